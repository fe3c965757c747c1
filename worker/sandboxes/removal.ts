/** Removes the containers of sandboxes, with all that was made for them. */
import type { Config } from "../../shared/config.ts";
import { faultPoint } from "../../shared/faults.ts";
import { step } from "../../shared/tracing/spans.ts";
import type { Logger } from "../../shared/util/log.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import type { OwnFiles } from "../runtime/container/own-files.ts";
import type { MeetingPlaces } from "../runtime/exec-server/meeting-places.ts";
import type { Host } from "../runtime/host/host.ts";
import type { Podman } from "../runtime/podman/containers.ts";
import { inSlot } from "../slots.ts";
import type { Roots } from "./roots.ts";

/** Removals at once, as a part of the starts at once. */
const removalsShare = 1 / 2;

interface Parts {
  readonly podman: Podman;
  readonly roots: Roots;
  readonly host: Host;
  readonly config: Config;
  readonly log: Logger;
  readonly meetings: MeetingPlaces;
  readonly own: OwnFiles;
}

export class Removal {
  readonly #parts: Parts;
  /** Their own, fewer turns: removals always go on, and yet leave most of the host to those who wait for a sandbox. */
  readonly #turns: Semaphore;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#turns = new Semaphore(Math.ceil(parts.config.createsAtOnce * removalsShare));
  }

  /** Removes a sandbox's container, if there is one, with all its files. */
  async remove(sandboxId: string): Promise<void> {
    await inSlot(this.#turns, () => this.#remove(sandboxId));
  }

  /** The same for what failed or is of no use; a failure is logged. */
  async discard(sandboxId: string): Promise<void> {
    await this.remove(sandboxId).catch((err) => this.#parts.log.error({ err, sandbox: sandboxId }, "a failed container could not be removed"));
  }

  async #remove(sandboxId: string): Promise<void> {
    const { podman, meetings, own, host, roots } = this.#parts;
    await step("container.remove", () => podman.removeOf(sandboxId));
    await meetings.remove(sandboxId);
    await own.remove(sandboxId);
    faultPoint("remove.container");
    host.groups?.sweep();
    await step("files.remove", () => roots.remove(sandboxId));
  }
}
