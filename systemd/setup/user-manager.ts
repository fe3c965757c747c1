/**
 * What the service manager of the worker's account is given beyond what every user has: worker and sandboxes run below it. systemd
 * has to know before it starts the manager, also at a boot, which is before the set-up, so the file stays until a removal.
 */
import { rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Account } from "../base/instance.ts";
import { run } from "../base/run.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import type { Step } from "./step.ts";

/** At a shutdown, the worker finishes its commands before the manager ends them. Users have neither cpuset nor io. To journald, the worker's lines are the manager's, so that the limits of the worker's unit count for nothing. */
export const userManagerText = `# Written by Sandgate, for the worker and its sandboxes.
[Unit]
Before=sandgate-worker.service
[Service]
Delegate=cpu cpuset io memory pids
LogRateLimitIntervalSec=1
LogRateLimitBurst=1000000
`;

const fileFor = ({ uid }: Pick<Account, "uid">): string => join("/etc/systemd/system", `user@${uid}.service.d`, "sandgate.conf");

/** A manager that runs already uses further controllers from its next start on. */
export function userManager(account: Pick<Account, "uid">): Step {
  const file = fileFor(account);
  return {
    title: "Delegating control groups to the worker's account",
    lacks: async () => ((await readIfThere(file)) === userManagerText ? undefined : file),
    provide: async () => {
      trustedPath(dirname(file), { make: 0o755 });
      await replaceFile(file, userManagerText, { mode: 0o644 });
      await run(["systemctl", "daemon-reload"]);
    },
  };
}

/** The folder stays if an operator has files in it. systemd has to read its files again after this. */
export async function removeUserManagerFile(account: Pick<Account, "uid">): Promise<void> {
  const file = fileFor(account);
  await rm(file, { force: true });
  await rmdir(dirname(file)).catch(() => {});
}
