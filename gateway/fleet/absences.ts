/**
 * Workers that have been away for longer than the grace time: their sandboxes are shown as `error`, until a process of theirs is
 * there again. Only what this gateway shows changes: nobody but a worker writes its entries.
 */
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import type { PeerWatch } from "../../shared/bus/presence.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Dispatcher } from "./dispatch.ts";
import type { EntryMirror } from "./entries.ts";

const lookMs = 1_000;

interface Parts {
  readonly sandboxes: EntryMirror<SandboxEntry>;
  readonly workers: Dispatcher;
  readonly peers: PeerWatch;
  readonly graceMs: number;
  readonly log: Logger;
}

export class Absences {
  readonly #parts: Parts;
  /** Every worker that has or had sandboxes. */
  readonly #known = new Set<string>();
  readonly #awaySinceMs = new Map<string, number>();
  /** Whose sandboxes are shown as `error`. */
  readonly #lost = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  /** Begins to look. A worker that is not there yet counts as away from now on. */
  constructor(parts: Parts) {
    const { sandboxes, peers, log } = parts;
    this.#parts = parts;
    for (const { worker_id } of sandboxes.values()) this.#known.add(worker_id);
    sandboxes.onChange((_id, entry) => entry && this.#known.add(entry.worker_id));
    peers.onCome(() => this.#look());
    peers.onGone(() => this.#look());
    this.#timer = every(lookMs, log, "could not look for workers that are away", () => this.#look()).unref();
    this.#look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const present = new Set(this.#parts.workers.workers().map(({ worker }) => worker.id));
    for (const id of this.#known) {
      if (present.has(id)) this.#back(id);
      else this.#away(id);
    }
  }

  #back(id: string): void {
    this.#awaySinceMs.delete(id);
    if (!this.#lost.delete(id)) return;
    this.#parts.log.info({ event: "worker_back", worker: id }, "a worker is back; its sandboxes are shown as it has them");
    this.#parts.sandboxes.showAs(id, undefined);
  }

  #away(id: string): void {
    const now = Date.now();
    const sinceMs = this.#awaySinceMs.get(id) ?? now;
    this.#awaySinceMs.set(id, sinceMs);
    if (now - sinceMs < this.#parts.graceMs || this.#lost.has(id)) return;
    this.#lost.add(id);
    const since = new Date(sinceMs).toISOString();
    this.#parts.log.warn({ event: "worker_away", worker: id, since }, "a worker has been away for long; its sandboxes are shown as error");
    const error = `its worker is gone, at least since ${since}; the sandbox comes back with it`;
    this.#parts.sandboxes.showAs(id, (entry) => (isInUse(entry) ? { ...entry, status: "error", error } : entry));
  }
}

const isInUse = ({ status }: SandboxEntry): boolean => status === "running" || status === "creating" || status === "moving";
