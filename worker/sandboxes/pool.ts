/**
 * A pool of containers started in advance, from which a sandbox of the default image and size is handed out in a few
 * milliseconds. It is filled in the background, never at the expense of a call, and not at all when the host is short.
 */

import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Config } from "../../shared/config.ts";
import { isolationOf, sandboxDefaults } from "../../shared/schemas/sandboxes.ts";
import { newId } from "../../shared/util/ids.ts";
import { defaultImageWord, wantedImage } from "../../shared/util/image.ts";
import type { Logger } from "../../shared/util/log.ts";
import { outsideTrace } from "../../shared/util/trace-context.ts";
import type { Counters } from "../counters.ts";
import { pidNamespaceOf } from "../runtime/process/proc.ts";
import { rootOver } from "../store/records.ts";
import type { Launched, LaunchSpec } from "./lifecycle.ts";

/** Pause after a container was taken, so that a burst of creates has the host to itself. */
const restMs = 150;
const failureRestMs = 10_000;

/** A waiting container, already named after the id of its future sandbox. */
export interface Prepared extends Launched {
  readonly id: string;
}

interface Parts {
  readonly config: Config;
  readonly counters: Counters;
  readonly log: Logger;
  /** Creates and starts a container that is ready for commands. */
  readonly launch: (spec: LaunchSpec) => Promise<Launched>;
  /** Removes such a container with its files. */
  readonly remove: (sandboxId: string) => Promise<void>;
  /** Whether the host has room for one more container beside the `waiting` ones, and nothing more important to do. */
  readonly mayFill: (waiting: number) => boolean;
}

export class WarmPool {
  readonly #parts: Parts;
  readonly #waiting: Prepared[] = [];
  #filling: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = true;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#waiting.length;
  }

  start(): void {
    this.#stopped = false;
    this.#fillAfter(0);
  }

  /** A waiting container for this call, if the call asks for what the pool holds. */
  take(call: Request<"create">): Prepared | undefined {
    const { config, counters } = this.#parts;
    if (!fits(call, config)) return undefined;
    this.#fillAfter(restMs);
    for (let prepared = this.#waiting.shift(); prepared; prepared = this.#waiting.shift()) {
      if (pidNamespaceOf(prepared.container.initPid) === prepared.container.pidNamespace) {
        counters.poolHits++;
        return prepared;
      }
      void this.#discard(prepared);
    }
    if (config.poolSize > 0) counters.poolMisses++;
    return undefined;
  }

  /** Removes the waiting containers. Resolves when they are gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#filling;
    await Promise.all(this.#waiting.splice(0).map((prepared) => this.#discard(prepared)));
  }

  #fillAfter(delayMs: number): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const fill = (): void => {
      this.#filling ??= this.#fill().finally(() => {
        this.#filling = undefined;
      });
    };
    // The call that took a container has nothing to do with the next one.
    outsideTrace(() => {
      this.#timer = setTimeout(fill, delayMs);
    });
  }

  async #fill(): Promise<void> {
    // Where all sandboxes must be strong, none would ever be taken.
    const size = this.#parts.config.isolation === "strong" ? 0 : this.#parts.config.poolSize;
    while (!this.#stopped && this.#waiting.length < size) {
      const id = newId("sandbox");
      try {
        if (!this.#parts.mayFill(this.size)) return this.#fillAfter(failureRestMs);
        this.#waiting.push({ id, ...(await this.#parts.launch(defaultSpec(id))) });
      } catch (error) {
        this.#parts.log.warn({ err: error, event: "pool_failed" }, "a container could not be prepared");
        return this.#fillAfter(failureRestMs);
      }
    }
  }

  async #discard({ id }: Prepared): Promise<void> {
    await this.#parts.remove(id).catch((err) => this.#parts.log.warn({ err, sandbox: id }, "a prepared container could not be removed"));
  }
}

function defaultSpec(id: string): LaunchSpec {
  const { cpus, memoryMiB, storageGB, access } = sandboxDefaults;
  return { sandboxId: id, cpus, memoryMiB, storageGB, network: access, isolation: "standard", source: rootOver(defaultImageWord) };
}

function fits(call: Request<"create">, config: Config): boolean {
  const { cpus, memoryMiB, storageGB, access } = sandboxDefaults;
  const isDefaultImage = wantedImage(call.image, config) === defaultImageWord;
  if (isolationOf(call) === "strong") return false;
  return isDefaultImage && call.cpu === cpus && call.memory === memoryMiB && call.storage === storageGB && call.network === access;
}
