/** The unprivileged account that runs the parts: a service account when started as root, else the person's own. */
import { userInfo } from "node:os";
import type { Config } from "../../shared/config.ts";
import { StartFailure } from "../failure.ts";
import type { Account } from "../instance.ts";
import { run, succeeds } from "../run.ts";
import type { Administrator } from "./administrator.ts";
import type { Step } from "./step.ts";

/** Creates the service account when started as root. */
export function serviceAccount(config: Config, administrator: Administrator): Step {
  const { user } = config;
  return {
    title: "Creating the service account",
    lacks: async () => {
      if (process.getuid?.() !== 0) return undefined;
      if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(user)) throw new StartFailure(`SANDGATE_USER is not a name for a user: ${user}`);
      return (await succeeds(["getent", "passwd", user])) ? undefined : user;
    },
    provide: async () => {
      const identity = ["--system", "--user-group", "--comment", "Sandgate sandboxes"];
      const place = ["--home-dir", `/var/lib/${user}/home`, "--no-create-home", "--shell", "/usr/sbin/nologin"];
      await administrator.run(`create the user ${user}`, ["useradd", ...identity, ...place, user]);
    },
  };
}

/** The account that exists once `serviceAccount` has been ensured. */
export async function findAccount(config: Config): Promise<Account> {
  if (process.getuid?.() !== 0) {
    const { username, uid, gid, homedir } = userInfo();
    return { name: username, uid, gid, home: homedir };
  }
  const [name = "", , uid, gid, , home = "/"] = (await run(["getent", "passwd", config.user])).split(":");
  const account = { name, uid: Number(uid), gid: Number(gid), home };
  if (account.uid === 0) throw new StartFailure("SANDGATE_USER must not be root: sandboxes run without privileges");
  return account;
}
