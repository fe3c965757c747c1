/** Gives back what a set-up takes from the kernel: Podman's namespace, control groups and the mounted volume. */
import { basename, join } from "node:path";
import type { Config } from "../../shared/config.ts";
import { attempt } from "../../shared/util/attempt.ts";
import { mountAt } from "../../shared/util/mounts.ts";
import { instanceOf, type Paths } from "../base/instance.ts";
import type { Terminal } from "../base/terminal.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { unmount } from "../volume/unmount.ts";
import { endUnusedPause } from "./pause.ts";

/** Whatever is still in use stays, and the next start uses it as it is; so it does with groups that only an administrator can remove. */
export async function releaseMachine(config: Config, terminal: Terminal): Promise<void> {
  const [{ findAccounts }, { createAdministrator }, { removeControlGroups }] = await Promise.all([
    import("../setup/account.ts"),
    import("../setup/administrator.ts"),
    import("../setup/control-groups.ts"),
  ]);
  const accounts = await findAccounts(config).catch(() => undefined);
  // A set-up that ended before it had them has taken nothing.
  if (!accounts) return;
  const { account, ...rest } = instanceOf(config, accounts);
  await endUnusedPause({ account, ...rest });
  await removeControlGroups(account, createAdministrator(terminal, new AbortController().signal));
  if (!config.volume) await releaseVolume(rest.paths, terminal);
}

/** That of the operator stays mounted. */
async function releaseVolume({ data, volume }: Paths, terminal: Terminal): Promise<void> {
  // Where others decide what the path means, nothing has been mounted.
  const dir = attempt(() => join(trustedPath(data), basename(volume)));
  if (!dir || !mountAt(dir) || (await unmount(dir))) return;
  terminal.warn(`${dir} is in use and stays mounted; the next start uses it as it is.`);
}
