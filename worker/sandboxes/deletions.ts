/** Retries deletions that could not be finished at first, for example on a full disk. */
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Reserve } from "../runtime/filesystem/reserve.ts";
import type { Snapshots } from "../snapshots/registry.ts";
import type { SandboxLifecycle } from "./lifecycle.ts";
import { finishDeletion } from "./reconcile.ts";
import type { Sandboxes } from "./registry.ts";

const retryMs = 5_000;

interface Parts {
  readonly sandboxes: Sandboxes;
  readonly snapshots: Snapshots;
  readonly lifecycle: SandboxLifecycle;
  readonly reserve: Reserve;
  readonly collectLayers: () => Promise<void>;
  readonly log: Logger;
}

export class UnfinishedDeletions {
  readonly #parts: Parts;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    const round = (): Promise<void> => this.#round().finally(() => this.#timer && this.start());
    this.#timer = setTimeout(() => inBackground(this.#parts.log, "unfinished deletions could not be retried", round), retryMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #round(): Promise<void> {
    const { sandboxes, snapshots, reserve, collectLayers, log } = this.#parts;
    for (const sandbox of [...sandboxes.all()]) await finishDeletion(this.#parts, sandbox);
    for (const record of [...snapshots.all()]) {
      if (record.status !== "deleting") continue;
      await reserve.spend(() => snapshots.remove(record.id)).catch((err) => log.warn({ err, snapshot: record.id }, "a deletion could still not be finished"));
    }
    await collectLayers().catch((err) => log.warn({ err }, "unused layers could not be removed"));
    await reserve.fill();
  }
}
