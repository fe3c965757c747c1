/** Who this worker is: its id, configured or generated once and kept, so that its sandboxes are found again after a restart; and its machine. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
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
}

/** The random id of this machine. Not among the records in LMDB, which may be lost and rebuilt. */
export function workerHome(dataDir: string): Home {
  const file = join(dataDir, "worker-home");
  const kept = (): string => (existsSync(file) ? readFileSync(file, "utf8").trim() : "");
  // On disk before it is claimed with: the claim outlives a power cut. A cut before that may leave an empty file.
  if (!kept()) writeFileSync(file, newId("home"), { mode: 0o600, flush: true });
  return { id: kept(), file };
}
