/** Creates, restarts and removes the containers of sandboxes. */
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import { decideMemory } from "../../shared/memory.ts";
import { isolationOf } from "../../shared/schemas/sandboxes.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Semaphore } from "../../shared/util/mutex.ts";
import { type Container, ContainerNotRunning, isCopy, notRunning } from "../runtime/container/container.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import type { Reserve } from "../runtime/filesystem/reserve.ts";
import type { Ids } from "../runtime/ids/open.ts";
import type { ListedContainer, Podman } from "../runtime/podman/containers.ts";
import type { ContainerSpec } from "../runtime/podman/spec.ts";
import { MemoryFailed, type MemoryImages, unrestored } from "../snapshots/memory.ts";
import { type RootSource, rootOver, type SandboxRecord } from "../store/records.ts";
import type { Isolator } from "./isolator.ts";
import { bytesOf, filesOf, type Launched, type Launcher, type LaunchSpec, type Waiting } from "./launcher.ts";
import type { LiveSandbox, Sandboxes } from "./registry.ts";
import type { Removal } from "./removal.ts";
import type { Roots } from "./roots.ts";

/** A container from before. */
type FoundContainer = Pick<ListedContainer, "containerId" | "range">;

/** What a record says of the container of its sandbox. */
type KnownSpec = Omit<LaunchSpec, "source">;

interface Parts {
  readonly sandboxes: Sandboxes;
  readonly podman: Podman;
  readonly roots: Roots;
  readonly ids: Ids;
  readonly oci: OciRuntime;
  readonly log: Logger;
  readonly reserve: Reserve;
  readonly memory: MemoryImages;
  readonly isolator: Isolator;
  readonly launcher: Launcher;
  readonly removal: Removal;
  readonly slots: Semaphore;
  /** Called when a sandbox has started with the processes of an image, and before anybody is told. */
  readonly onCopied: (sandbox: LiveSandbox, container: Container, image: number) => void;
  readonly collectLayers: () => Promise<void>;
}

export class SandboxLifecycle {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Creates the container of a sandbox, and starts it once that is announced. On failure nothing of the container is left.
   *
   * @param known when it is announced @param waiting a container that was started for it
   */
  async start(sandbox: LiveSandbox, known = Promise.resolve(), waiting?: Waiting): Promise<void> {
    const isFetched = sandbox.record.memory_from?.from !== undefined;
    await this.#start(sandbox, known, waiting);
    if (isFetched) inBackground(this.#parts.log, "an image of memory is removed later", () => this.#parts.collectLayers());
  }

  async #start(sandbox: LiveSandbox, known: Promise<void>, waiting: Waiting | undefined): Promise<void> {
    const { record } = sandbox;
    const noteRoot = async (root: RootSource): Promise<void> => {
      await known;
      // What was promised before is made once more from what it was to be made from, should the worker die now.
      if (!sandbox.record.acknowledged) await this.#parts.sandboxes.noteFacts({ ...record, root });
    };
    let published: Promise<void> | undefined;
    const onStarted = (): void => {
      // Of a copy nobody is told yet, and what became of its memory is known at the end.
      if (record.move || record.memory_from || sandbox.record.acknowledged) return;
      published = this.#parts.sandboxes.announceStarted(sandbox);
      published.catch(() => {}); // It is waited for at the end.
    };
    const spec = { ...specOf(record), source: record.root ?? rootOver(record.image), known, onFiles: noteRoot, onStarted };
    const { container, root, restored } = await this.#launchFrom(spec, record, waiting).catch(async (error: unknown) => {
      await published?.catch(() => {}); // What is being published must not appear after it was removed.
      throw error;
    });
    sandbox.container = container;
    if (record.memory_from && isCopy(container)) this.#parts.onCopied(sandbox, container, record.memory_from.image);
    const changes = { container_id: container.id, root, ...restored };
    if (record.move) return this.#parts.sandboxes.arrive(sandbox, changes);
    if (sandbox.record.acknowledged) return this.#parts.sandboxes.note(sandbox, "started", changes);
    try {
      await this.#parts.sandboxes.promise(sandbox, "started", changes, published);
    } catch (error) {
      sandbox.container = undefined;
      await this.#parts.removal.discard(sandbox.record.id);
      throw error;
    }
  }

  /**
   * Makes a waiting container that has the files of a sandbox that sandbox, of which nothing is recorded. On failure nothing of the
   * container is left.
   *
   * @param sure throws if nobody may be told of the sandbox any more
   * @returns false if it could not become that
   */
  async startReady(sandbox: LiveSandbox, waiting: Waiting, sure: () => Promise<void>): Promise<boolean> {
    const { launcher, sandboxes, removal } = this.#parts;
    const { record } = sandbox;
    try {
      const noted = waiting.furnished?.then((ahead) => ahead && sandboxes.noteFacts({ ...record, root: ahead.root }));
      const [launched] = await Promise.all([launcher.takeReady(waiting, { ...specOf(record), source: rootOver(record.image) }), noted]);
      if (!launched) {
        await removal.remove(record.id);
        return false;
      }
      await sure();
      sandbox.container = launched.container;
      await sandboxes.promise(sandbox, "started", { container_id: launched.container.id, root: launched.root });
      return true;
    } catch (error) {
      sandbox.container = undefined;
      await removal.discard(record.id);
      throw error;
    }
  }

  /**
   * Fetches all that the copy of a sandbox from another worker is made from, with its memory, so that `start` need not any more. Where
   * the memory cannot be had, the record says why.
   */
  async fetch(sandbox: LiveSandbox): Promise<void> {
    const { record } = sandbox;
    if (record.root) await this.#parts.roots.provide({ sandboxId: record.id }, record.root);
    if (!record.memory_from) return;
    try {
      await this.#parts.memory.fetch(record.memory_from);
    } catch (error) {
      if (!(error instanceof MemoryFailed)) throw error;
      this.#parts.log.warn({ err: error, event: "memory_not_restored", sandbox: record.id }, "a sandbox comes from another worker without its memory");
      sandbox.record = { ...record, memory_from: undefined, ...unrestored({ memory: false, reason: error.message }) };
    }
  }

  /**
   * As `launch`, with the processes of an image of memory, if there is one; where that fails and is not required, with none.
   *
   * @throws {SandgateError} also `unprocessable` when it is required
   */
  async #launchFrom(
    spec: LaunchSpec,
    { memory_from: memory, status }: SandboxRecord,
    waiting: Waiting | undefined,
  ): Promise<Launched & { readonly restored: Partial<SandboxRecord> }> {
    const { launcher, log } = this.#parts;
    if (!memory) return { ...(await launcher.launch(spec, waiting)), restored: {} };
    try {
      // What comes from another worker was fetched when it was offered.
      if (status !== "moving") await this.#parts.memory.fetch(memory);
      return { ...(await launcher.launch({ ...spec, memoryImage: memory.image })), restored: { memory_from: undefined } };
    } catch (error) {
      if (!(error instanceof MemoryFailed)) throw error;
      log.warn({ err: error, event: "memory_not_restored", sandbox: spec.sandboxId }, "a sandbox could not start with the memory of its snapshot");
      const restored = { memory_from: undefined, ...unrestored(decideMemory(memory.wish, error.message)) };
      return { ...(await launcher.launch(spec)), restored };
    }
  }

  /**
   * Adopts the running container of a recorded sandbox, or starts it if it has stopped. Without one, as after a restart of the machine,
   * it is made again over the files of the sandbox.
   *
   * @throws also where these are gone
   */
  async recover(sandbox: LiveSandbox, found: FoundContainer | undefined, isRunning: boolean): Promise<void> {
    const { id, root } = sandbox.record;
    const spec = specOf(sandbox.record);
    if (found?.range !== undefined) this.#parts.ids.ranges?.claims.retake(id, found.range);
    const container = (isRunning && found && (await this.#adopt(spec, found, root))) || (await this.#startAgain(spec, found, root));
    sandbox.container = container;
    inBackground(this.#parts.log, "the exec server of a sandbox could not be taken over", () => this.#parts.oci.resume(container));
    await this.#parts.roots.limit(id, bytesOf(spec));
    await this.#parts.sandboxes.note(sandbox, "recovered", { container_id: container.id });
  }

  /** Whether a sandbox that has no container can get one again. */
  hasFiles({ record: { id, root } }: LiveSandbox): boolean {
    return root !== undefined && this.#parts.roots.has(id);
  }

  /** @returns undefined if it has ended without Podman knowing, because its monitor was killed as well */
  async #adopt(spec: ContainerSpec, found: FoundContainer, source: RootSource | undefined): Promise<Container | undefined> {
    try {
      return await this.#parts.isolator.ready(found, spec, "used", source?.base);
    } catch (error) {
      if (error instanceof ContainerNotRunning) return undefined;
      throw error;
    }
  }

  /**
   * Starts a sandbox again whose container has stopped. Another one takes its place, over the same files: somebody may be removing the
   * stopped one, or Podman cannot start it, does not know it, or does not know that it has stopped.
   */
  async #startAgain(spec: KnownSpec, found: FoundContainer | undefined, source: RootSource | undefined): Promise<Container> {
    const { slots, isolator } = this.#parts;
    const containerId = await slots.run(() => (source ? this.#replace(spec, found, source) : this.#startFound(spec, found)));
    return isolator.ready({ containerId }, spec, "new", source?.base);
  }

  async #replace(spec: KnownSpec, found: FoundContainer | undefined, source: RootSource): Promise<string> {
    const { roots, podman } = this.#parts;
    if (!roots.has(spec.sandboxId)) throw new Error("its files are gone");
    if (found) await podman.remove(found.containerId);
    const root = await roots.mount(spec, source, bytesOf(spec));
    return podman.run(spec, filesOf({ ...root, base: root.source.base }));
  }

  /** A container that an early version had Podman make from its image has the files of its sandbox in it. */
  async #startFound(spec: ContainerSpec, found: FoundContainer | undefined): Promise<string> {
    if (!found || !(await this.#parts.podman.start(found.containerId, spec))) throw new Error("its container is gone");
    return found.containerId;
  }

  /** Ends everything in a sandbox and removes it with its files. Resolves when it is gone. */
  async delete(sandbox: LiveSandbox): Promise<void> {
    await this.#parts.reserve.spend(() => this.#delete(sandbox));
    if (sandbox.record.root) await this.#parts.collectLayers().catch((err) => this.#parts.log.error({ err }, "unused layers could not be removed"));
  }

  /** Can be repeated when it was not finished. */
  async #delete(sandbox: LiveSandbox): Promise<void> {
    await this.#parts.sandboxes.apply(sandbox, "delete");
    faultPoint("remove.marked");
    this.endActivities(sandbox, new SandgateError("not_found", "the sandbox was deleted", { reason: "no_such_sandbox" }));
    await this.removeContainer(sandbox.record.id);
    sandbox.container = undefined;
    faultPoint("remove.files");
    await this.#parts.sandboxes.remove(sandbox);
  }

  /** Removes a sandbox's container, if there is one, with all its files. */
  async removeContainer(sandboxId: string): Promise<void> {
    await this.#parts.removal.remove(sandboxId);
  }

  /** Restarts a sandbox whose container stopped unexpectedly. Its commands end; its files are kept. */
  restartLost(sandbox: LiveSandbox): void {
    inBackground(this.#parts.log, "a sandbox that stopped could not be restarted", () => this.#restartLost(sandbox));
  }

  async #restartLost(sandbox: LiveSandbox): Promise<void> {
    const lost = sandbox.container;
    await this.#parts.sandboxes.exclusive(sandbox.record.id, async () => {
      const { record, container } = sandbox;
      // Another caller may have noticed the loss first and restarted it.
      if (record.status !== "running" || !container || container !== lost) return;
      this.#parts.log.warn({ event: "sandbox_lost", sandbox: record.id }, "a sandbox stopped by itself and is restarted");
      sandbox.container = undefined;
      this.endActivities(sandbox, notRunning("it stopped by itself"));
      try {
        await this.recover(sandbox, { containerId: container.id, range: this.#parts.ids.ranges?.claims.of(record.id) }, false);
      } catch (error) {
        this.#parts.log.error({ err: error, sandbox: record.id }, "a sandbox could not be started again");
        await this.#parts.sandboxes.note(sandbox, "lost", { error: "the sandbox stopped and could not be started again" });
      }
    });
  }

  /** Stops the processes of a sandbox for a shutdown; it is started again with the worker. */
  async stop(sandbox: LiveSandbox): Promise<void> {
    const { container } = sandbox;
    sandbox.container = undefined;
    if (container) await this.#parts.slots.run(() => this.#parts.podman.stop(container.id));
    // Also of one that could not be started: the volume is unmounted next.
    await this.#parts.roots.unmount(sandbox.record.id);
  }

  endActivities(sandbox: LiveSandbox, reason: SandgateError): void {
    for (const activity of sandbox.activities) activity.abort(reason);
  }
}

function specOf(record: SandboxRecord): KnownSpec {
  return {
    sandboxId: record.id,
    storageGB: record.storage,
    cpus: record.cpu,
    memoryMiB: record.memory,
    network: record.network,
    isolation: isolationOf(record),
  };
}
