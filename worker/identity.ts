/** The worker's id: configured, or generated once and kept, so that its sandboxes are found again after a restart. */
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
