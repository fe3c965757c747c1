/** The networks of sandboxes that are attached from outside: as they start, and again when the program that carries one has ended. */
import { isolationOf } from "../../shared/schemas/sandboxes.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type Container, carriesNetwork, isCopy, isThere, type RuntimeNote } from "../runtime/container/container.ts";
import type { Host } from "../runtime/host/host.ts";
import { type Attachment, attachNetwork } from "../runtime/network/attachment.ts";
import { isAttached } from "../runtime/network/network.ts";
import type { ContainerSpec } from "../runtime/podman/spec.ts";
import { giveWay } from "../runtime/process/priority.ts";
import { killNow } from "../runtime/process/program.ts";
import type { MemoryImages } from "../snapshots/memory.ts";
import type { LiveSandbox, Sandboxes } from "./registry.ts";

const retryMs = 10_000;

type Networked = Pick<ContainerSpec, "network" | "isolation">;

interface Parts {
  readonly host: Host;
  readonly sandboxes: Sandboxes;
  readonly log: Logger;
  /** Nobody but the privileged helper can give a copy a network. */
  readonly memory: Pick<MemoryImages, "connect">;
}

export class Networks {
  readonly #parts: Parts;
  /** When to look again at networks that cannot be attached, or are being attached. */
  readonly #notBeforeMs = new WeakMap<Container, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Begins to attach the network of a container that is being made, if it gets one so. @throws {SandgateError} `internal_error` */
  async begin(made: RuntimeNote, spec: Networked): Promise<Attachment | undefined> {
    return isAttached(this.#parts.host, spec) ? attachNetwork(made) : undefined;
  }

  /** Attaches the network of a started container, unless it has one. @throws {SandgateError} `internal_error` */
  async provide(container: Container, spec: Networked): Promise<void> {
    if (!this.#lacks(container, spec)) return;
    const { pid, up } = await attachNetwork({ pid: container.doorPid, bundle: container.bundle });
    await up;
    if (isCopy(container)) await this.#parts.memory.connect(container).catch((error: unknown) => abandon(pid, error));
    giveWay(pid);
    container.networkPids = [pid];
  }

  /** Attaches the network of a running sandbox again when the program that carried it has ended. Its connections are lost. */
  mend(sandbox: LiveSandbox): void {
    const { record, container } = sandbox;
    if (!container || !this.#lacks(container, networkedOf(record)) || performance.now() < (this.#notBeforeMs.get(container) ?? 0)) return;
    this.#notBeforeMs.set(container, performance.now() + retryMs);
    inBackground(this.#parts.log, "the network of a sandbox could not be attached again", () => this.#mend(sandbox, container));
  }

  #mend(sandbox: LiveSandbox, container: Container): Promise<void> {
    const { host, sandboxes, log } = this.#parts;
    const { record } = sandbox;
    return sandboxes.exclusive(record.id, async () => {
      // It may be ending, and its network first.
      if (sandbox.container !== container || !isThere(container)) return;
      log.warn({ event: "network_lost", sandbox: record.id }, "the network of a sandbox was lost and is attached again");
      await this.provide(container, networkedOf(record));
      await host.groups?.share(record.id, container.networkPids);
      this.#notBeforeMs.delete(container);
    });
  }

  #lacks(container: Container, spec: Networked): boolean {
    return isAttached(this.#parts.host, spec) && !container.networkPids.some(carriesNetwork);
  }
}

/** What nobody uses would keep the next from being attached. */
function abandon(pid: number, error: unknown): never {
  killNow(pid);
  throw error;
}

const networkedOf = (record: LiveSandbox["record"]): Networked => ({ network: record.network, isolation: isolationOf(record) });
