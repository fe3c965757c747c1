/** Who this worker is: its id, configured or generated once and kept, so that its sandboxes are found again after a restart; and its machine. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../shared/config.ts";
import { ConfigError } from "../shared/config.ts";
import { newId } from "../shared/util/ids.ts";

/** @throws {ConfigError} when the id cannot be part of a NATS subject. */
export function workerIdentity(config: Config, dataDir: string): string {
  const file = join(dataDir, "worker-id");
  if (config.workerId) {
    if (!/^[a-zA-Z0-9_-]{1,63}$/.test(config.workerId)) throw new ConfigError("SANDGATE_WORKER_ID must be 1 to 63 letters, digits, '_' or '-'");
    return config.workerId;
  }
  if (!existsSync(file)) writeFileSync(file, newId("worker"), { mode: 0o600, flag: "wx" });
  return readFileSync(file, "utf8").trim();
}

/** The machine that a worker's id belongs to. */
export interface Home {
  readonly id: string;
  /** Where the id is kept. */
  readonly file: string;
  /** Another one after each start of the machine, and on a machine that has a copy of the disk. */
  readonly bootId: string;
}

/** The kernel's, the same in all containers of a host. */
const bootIdFile = "/proc/sys/kernel/random/boot_id";

/**
 * The random id of this machine. Not among the records in LMDB, which may be lost and rebuilt.
 *
 * @param runtimeDir a folder of the worker's that should be in memory, so that a copy of the disk has none of it
 */
export function workerHome(dataDir: string, runtimeDir: string): Home {
  mkdirSync(runtimeDir, { recursive: true, mode: 0o700 });
  const [home, run] = [join(dataDir, "worker-home"), join(runtimeDir, "run-id")];
  // On disk before it is claimed with: the claim outlives a power cut.
  return { id: kept(home, () => newId("home")), file: home, bootId: `${readFileSync(bootIdFile, "utf8").trim()}-${kept(run, randomUUID)}` };
}

/** The id in a file, made where there is none. A power cut may leave an empty file. */
function kept(file: string, make: () => string): string {
  const read = (): string => (existsSync(file) ? readFileSync(file, "utf8").trim() : "");
  if (!read()) writeFileSync(file, make(), { mode: 0o600, flush: true });
  return read();
}
