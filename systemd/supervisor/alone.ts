/** The set-up, which only one process at a time does. */
import { dirname, join } from "node:path";
import type { Config } from "../../shared/config.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import type { Starter } from "../base/instance.ts";
import type { Terminal } from "../base/terminal.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import type { Prepared } from "../setup/prepare.ts";
import { holderOf, type Lock, tryLock, waitForLock } from "./lock.ts";
import { releaseMachine } from "./release.ts";

/** Created before anything else. The set-up corrects its owner and mode, and those of the data directory. */
export function makeSupervisorFolder(folder: string): void {
  try {
    trustedPath(dirname(dirname(folder)), { make: 0o755 });
    trustedPath(folder, { make: 0o700 });
  } catch (error) {
    throw new StartFailure(`The data directory cannot be used (SANDGATE_DATA_DIR): ${messageOf(error)}`);
  }
}

/** The file whose lock an `npm start` holds for as long as it runs. @param folder that of the supervisor */
export const runLock = (folder: string): string => join(folder, "run.lock");

/** The file whose lock is held by whoever sets up, or changes what a set-up writes. @param folder that of the supervisor */
export const setupLock = (folder: string): string => join(folder, "setup.lock");

/** Keeps `npm start` out until the lock is released. @param folder that of the supervisor @throws {StartFailure} if one runs */
export async function keepStartOut(folder: string): Promise<Lock> {
  const file = runLock(folder);
  const lock = await tryLock(file);
  if (!lock) throw new StartFailure(`npm start runs on ${dirname(folder)}: ${holderOf(file)}. Stop it first.`);
  return lock;
}

/** Prepares the machine, after other processes have done so; of an attempt that fails nothing stays with the kernel. @param folder that of the supervisor @throws {StartFailure} */
export async function prepareAlone(folder: string, config: Config, terminal: Terminal, signal: AbortSignal, starter?: Starter): Promise<Prepared> {
  const file = setupLock(folder);
  const atOnce = await tryLock(file);
  if (!atOnce) terminal.line(`· Another set-up is running, ${holderOf(file)}; waiting for it…`);
  const lock = atOnce ?? (await waitForLock(file, signal));
  try {
    const { prepareMachine } = await import("../setup/prepare.ts");
    return await prepareMachine(config, terminal, signal, starter);
  } catch (error) {
    // Services that run go on with what there is.
    if (starter !== "systemd") await releaseMachine(config, terminal);
    throw error;
  } finally {
    lock.release();
  }
}
