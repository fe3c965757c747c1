/** The unprivileged accounts that run the parts: service accounts when started as root, else the user's own. */
import { userInfo } from "node:os";
import type { Config } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import type { Account, Accounts, PartName } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import type { Administrator } from "./administrator.ts";
import type { Step } from "./step.ts";

const userNameCharsMax = 32;
const suffixes: Readonly<Record<PartName, string>> = { worker: "", gateway: "-gateway", nats: "-nats" };
const longestSuffix = Math.max(...Object.values(suffixes).map((suffix) => suffix.length));
const comments: Readonly<Record<PartName, string>> = { worker: "Sandgate sandboxes", gateway: "Sandgate gateway", nats: "Sandgate NATS server" };

/** Creates the service accounts when started as root. */
export function serviceAccounts(config: Config, administrator: Administrator): Step {
  const missing = async () => {
    if (process.getuid?.() !== 0) return [];
    checkName(config.user);
    const found = await Promise.all(parts().map(async (part) => ({ part, exists: await succeeds(["getent", "passwd", nameOf(config, part)]) })));
    return found.filter(({ exists }) => !exists).map(({ part }) => part);
  };
  return {
    title: "Creating the service accounts",
    lacks: async () => (await missing()).map((part) => nameOf(config, part)).join(", ") || undefined,
    provide: async () => {
      for (const part of await missing()) await create(nameOf(config, part), part, administrator);
    },
  };
}

async function create(user: string, part: PartName, administrator: Administrator): Promise<void> {
  const identity = ["--system", "--user-group", "--comment", comments[part]];
  const home = part === "worker" ? `/var/lib/${user}/home` : "/nonexistent";
  const useradd = ["useradd", ...identity, "--home-dir", home, "--no-create-home", "--shell", "/usr/sbin/nologin", user];
  // Ended halfway, it leaves a user whose group is not there, and whose number the next group gets.
  await administrator.run(`create the user ${user}`, useradd, { always: true });
}

/** The accounts, which exist after the step `serviceAccounts`. @throws {StartFailure} if one has the rights of root or of another part. */
export async function findAccounts(config: Config): Promise<Accounts> {
  if (process.getuid?.() !== 0) {
    const { username, uid, gid, homedir } = userInfo();
    const account = { name: username, uid, gid, home: homedir };
    return { worker: account, gateway: account, nats: account };
  }
  const [worker, gateway, nats] = await Promise.all([findAccount(config), serviceAccount(config, "gateway"), serviceAccount(config, "nats")]);
  const all = [worker, gateway, nats];
  for (const kind of ["uid", "gid"] as const) {
    if (new Set(all.map((account) => account[kind])).size === all.length) continue;
    throw new StartFailure(`${all.map(({ name }) => name).join(", ")} must be different users with groups of their own`);
  }
  return { worker, gateway, nats };
}

/** The account of the worker. */
export async function findAccount(config: Config): Promise<Account> {
  return process.getuid?.() === 0 ? serviceAccount(config, "worker") : (await findAccounts(config)).worker;
}

async function serviceAccount(config: Config, part: PartName): Promise<Account> {
  const user = nameOf(config, part);
  const [name = "", , uid, gid, , home = "/"] = (await run(["getent", "passwd", user])).split(":");
  const groups = (await run(["id", "--groups", user])).split(" ").map(Number);
  if (Number(uid) === 0 || groups.includes(0))
    throw new StartFailure(`${user} must not be root or in its group: the parts run without privileges (SANDGATE_USER)`);
  return { name, uid: Number(uid), gid: Number(gid), home };
}

function checkName(user: string): void {
  const charsMax = userNameCharsMax - longestSuffix;
  if (/^[a-z_][a-z0-9_-]*$/.test(user) && user.length <= charsMax) return;
  throw new StartFailure(
    `SANDGATE_USER is not a name for a user, or has more than ${charsMax} characters, which leaves no room for ${suffixes.gateway} and ${suffixes.nats} behind it: ${user}`,
  );
}

const parts = (): PartName[] => Object.keys(suffixes) as PartName[];

const nameOf = ({ user }: Config, part: PartName): string => user + suffixes[part];
