/** Creates, restarts and removes the containers of sandboxes. */
import { chownSync } from "node:fs";
import type { BaseImage } from "../../shared/bus/entries.ts";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import { decideMemory } from "../../shared/memory.ts";
import { type Isolation, isolationOf } from "../../shared/schemas/sandboxes.ts";
import { step } from "../../shared/tracing/spans.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import { until } from "../../shared/waiting.ts";
import { faultPoint } from "../faults.ts";
import { type Container, isCopy, madeIn, notRunning, type RuntimeNote } from "../runtime/container/container.ts";
import type { Copies } from "../runtime/container/copies.ts";
import { GroupV2 } from "../runtime/container/groups.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import type { MeetingPlaces } from "../runtime/exec-server/meeting-places.ts";
import { makeFolderInside } from "../runtime/filesystem/inside.ts";
import type { Reserve } from "../runtime/filesystem/reserve.ts";
import { groupMaker, type Host } from "../runtime/host/host.ts";
import { boundUser, signalsLimit } from "../runtime/ids/bounds.ts";
import type { Ids } from "../runtime/ids/open.ts";
import { closePrivateNetworks, type Namespace } from "../runtime/network/network.ts";
import type { Resolvers } from "../runtime/network/resolvers.ts";
import type { ListedContainer, Podman } from "../runtime/podman/containers.ts";
import type { ContainerFiles, ContainerSpec } from "../runtime/podman/spec.ts";
import { giveWay } from "../runtime/process/priority.ts";
import { inSlot } from "../slots.ts";
import { MemoryFailed, type MemoryImages, unrestored } from "../snapshots/memory.ts";
import { type MemorySource, type RootSource, rootOver, type SandboxRecord } from "../store/records.ts";
import type { Urgent } from "../urgent.ts";
import type { Networks } from "./networks.ts";
import type { LiveSandbox, Sandboxes } from "./registry.ts";
import type { MountedRoot, Provided, RootPlace, Roots } from "./roots.ts";

const GB = 1024 ** 3;
/** How often it is looked whether the OCI runtime has made a container, and for how long. */
const madePollMs = 2;
const madeMsMax = 60_000;
/** Removals at once, as a part of the starts at once. */
const removalsShare = 1 / 2;

/** A requested container with its files. */
export interface LaunchSpec extends ContainerSpec {
  readonly storageGB: number;
  readonly source: RootSource;
  /** The number of the image of memory whose processes it starts with; undefined for none. */
  readonly memoryImage?: number;
  /** Before this resolves nothing may run, as nobody would know of it later. */
  readonly known?: Promise<void>;
}

/** A running container, and what its files were made from. */
export interface Launched {
  readonly container: Container;
  readonly root: RootSource;
}

/** What a container is made on, and the image below it. */
type ContainerPlace = RootPlace & Pick<ContainerFiles, "base">;

/** A container that runs, or that the OCI runtime has made according to its note. */
interface Started {
  readonly containerId: string;
  readonly note?: RuntimeNote | undefined;
}

/** A container from before. */
type FoundContainer = Pick<ListedContainer, "containerId" | "range">;

export class SandboxLifecycle {
  readonly #sandboxes: Sandboxes;
  readonly #podman: Podman;
  readonly #oci: OciRuntime;
  readonly #host: Host;
  readonly #log: Logger;
  readonly #slots: Semaphore;
  /** Their own, fewer turns: removals always go on, and yet leave most of the host to those who wait for a sandbox. */
  readonly #removals: Semaphore;
  readonly #roots: Roots;
  readonly #ids: Ids;
  readonly #collectLayers: () => Promise<void>;
  readonly #urgent: Urgent;
  readonly #reserve: Reserve;
  readonly #processesMax: number;
  readonly #meetings: MeetingPlaces;
  readonly #resolvers: Resolvers;
  readonly #networks: Networks;
  readonly #copies: Copies;
  readonly #memory: MemoryImages;
  readonly #onCopied: (sandbox: LiveSandbox, container: Container, image: number) => void;

  constructor(parts: {
    sandboxes: Sandboxes;
    podman: Podman;
    roots: Roots;
    ids: Ids;
    oci: OciRuntime;
    host: Host;
    log: Logger;
    config: Config;
    urgent: Urgent;
    reserve: Reserve;
    meetings: MeetingPlaces;
    resolvers: Resolvers;
    networks: Networks;
    copies: Copies;
    memory: MemoryImages;
    /** Called when a sandbox has started with the processes of an image, and before anybody is told. */
    onCopied: (sandbox: LiveSandbox, container: Container, image: number) => void;
    collectLayers: () => Promise<void>;
  }) {
    this.#sandboxes = parts.sandboxes;
    this.#podman = parts.podman;
    this.#roots = parts.roots;
    this.#ids = parts.ids;
    this.#oci = parts.oci;
    this.#host = parts.host;
    this.#log = parts.log;
    this.#collectLayers = parts.collectLayers;
    this.#urgent = parts.urgent;
    this.#reserve = parts.reserve;
    this.#meetings = parts.meetings;
    this.#resolvers = parts.resolvers;
    this.#networks = parts.networks;
    this.#copies = parts.copies;
    this.#memory = parts.memory;
    this.#onCopied = parts.onCopied;
    this.#slots = new Semaphore(parts.config.createsAtOnce);
    this.#removals = new Semaphore(Math.ceil(parts.config.createsAtOnce * removalsShare));
    this.#processesMax = parts.config.sandboxPidsMax;
  }

  /** Creates the container of a sandbox, and starts it once that is recorded. On failure nothing of the container is left. */
  async start(sandbox: LiveSandbox, known = Promise.resolve()): Promise<void> {
    const isFetched = sandbox.record.memory_from?.from !== undefined;
    await this.#start(sandbox, known);
    if (isFetched) inBackground(this.#log, "an image of memory is removed later", () => this.#collectLayers());
  }

  async #start(sandbox: LiveSandbox, known: Promise<void>): Promise<void> {
    const { record } = sandbox;
    const spec = { ...specOf(record), source: record.root ?? rootOver(record.image), known };
    const { container, root, restored } = await this.#launchFrom(spec, record.memory_from, record.status === "moving");
    sandbox.container = container;
    if (record.memory_from && isCopy(container)) this.#onCopied(sandbox, container, record.memory_from.image);
    const changes = { container_id: container.id, root, ...restored };
    if (record.move) return this.#sandboxes.arrive(sandbox, changes);
    if (sandbox.record.acknowledged) return this.#sandboxes.note(sandbox, "started", changes);
    try {
      await this.#sandboxes.promise(sandbox, "started", changes);
    } catch (error) {
      sandbox.container = undefined;
      await this.#discard(sandbox.record.id);
      throw error;
    }
  }

  /**
   * Fetches all that the copy of a sandbox from another worker is made from, with its memory, so that `start` need not any more. Where
   * the memory cannot be had, the record says why.
   */
  async fetch(sandbox: LiveSandbox): Promise<void> {
    const { record } = sandbox;
    if (record.root) await this.#roots.provide({ sandboxId: record.id }, record.root);
    if (!record.memory_from) return;
    try {
      await this.#memory.fetch(record.memory_from);
    } catch (error) {
      if (!(error instanceof MemoryFailed)) throw error;
      this.#log.warn({ err: error, event: "memory_not_restored", sandbox: record.id }, "a sandbox comes from another worker without its memory");
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
    memory: MemorySource | undefined,
    areFetched: boolean,
  ): Promise<Launched & { readonly restored: Partial<SandboxRecord> }> {
    if (!memory) return { ...(await this.launch(spec)), restored: {} };
    try {
      if (!areFetched) await this.#memory.fetch(memory);
      return { ...(await this.launch({ ...spec, memoryImage: memory.image })), restored: { memory_from: undefined } };
    } catch (error) {
      if (!(error instanceof MemoryFailed)) throw error;
      this.#log.warn({ err: error, event: "memory_not_restored", sandbox: spec.sandboxId }, "a sandbox could not start with the memory of its snapshot");
      const restored = { memory_from: undefined, ...unrestored(decideMemory(memory.wish, error.message)) };
      return { ...(await this.launch(spec)), restored };
    }
  }

  /** Creates and starts a container, isolated and ready for commands. On failure nothing of it is left. */
  async launch(spec: LaunchSpec): Promise<Launched> {
    try {
      return await this.#urgent.run(() => this.#launchNow(spec));
    } finally {
      this.#prepare();
    }
  }

  /** Does ahead what the next sandbox need not wait for. */
  #prepare(): void {
    const { ranges, areGiven } = this.#ids;
    if (areGiven) inBackground(this.#log, "the user ids of the next sandbox could not be prepared", () => ranges?.prepare());
  }

  async #launchNow(spec: LaunchSpec): Promise<Launched> {
    try {
      this.#podman.prepare(spec);
      const provided = await step("sandbox.source", () => this.#roots.provide(spec, spec.source));
      // All of it in one turn: more at once than there are CPUs would only have each of them end later.
      return await inSlot(this.#slots, () => this.#make(spec, provided));
    } catch (error) {
      await this.#discard(spec.sandboxId);
      throw error;
    }
  }

  async #make(spec: LaunchSpec, provided: Provided): Promise<Launched> {
    const place = spec.memoryImage === undefined ? this.#roots.place(spec, provided) : undefined;
    const making = step("sandbox.files", () => this.#roots.make(spec, provided, bytesOf(spec)));
    making.catch(() => {}); // Whoever needs them waits for them.
    try {
      const container = await (spec.memoryImage === undefined
        ? this.#run(spec, { ...(place ?? (await making)), base: provided.base }, making)
        : this.#restore(spec.memoryImage, spec, await making));
      // What starts the sandbox's commands comes only now that these have their limits. The first of them waits for it.
      inBackground(this.#log, "the exec server of a sandbox could not be started", () => this.#oci.prepare(container));
      const root = await making;
      provideWorkingDir(root, container);
      return { container, root: root.source };
    } finally {
      // What is made of them is removed only when nothing is being made any more.
      await making.catch(() => {});
    }
  }

  /**
   * Starts a container and isolates it. Podman notes it while its files are made; where the OCI runtime says when it has made it, most of
   * the isolation is done while Podman still notes that it was started.
   */
  async #run(spec: LaunchSpec, at: ContainerPlace, making: Promise<MountedRoot>): Promise<Container> {
    const over = new AbortController();
    let early: Promise<Container> | undefined;
    const onCreated = async (id: string): Promise<void> => {
      faultPoint("create.noted");
      await Promise.all([making, spec.known]);
      faultPoint("create.mounted");
      if (this.#host.runtime !== "crun" || spec.isolation !== "standard") return;
      early = this.#isolateWhenMade(id, spec, at.base, over.signal);
      early.catch(() => {}); // It is of no interest when Podman fails.
    };
    try {
      const containerId = await step("container.start", () => this.#podman.run(spec, filesOf(at), onCreated));
      faultPoint("create.started");
      return await this.#limited(early ?? this.#isolate({ containerId }, spec, at.base), spec);
    } finally {
      over.abort();
    }
  }

  async #isolateWhenMade(containerId: string, spec: LaunchSpec, base: BaseImage, signal: AbortSignal): Promise<Container> {
    // Where it cannot be found out, Podman has failed as well, or the container runs by now.
    const note = await until(() => madeIn(this.#host, containerId), { pollMs: madePollMs, timeoutMs: madeMsMax, signal });
    return this.#isolate({ containerId, note }, spec, base);
  }

  #isolate(started: Started, spec: LaunchSpec, base: BaseImage): Promise<Container> {
    return step("container.isolate", () => this.#ready(started, spec, "new", base));
  }

  async #limited(container: Promise<Container>, spec: LaunchSpec): Promise<Container> {
    return (await Promise.all([container, this.#roots.limit(spec.sandboxId, bytesOf(spec))]))[0];
  }

  /** The same with the processes of an image of memory. */
  async #restore(image: number, spec: LaunchSpec, root: MountedRoot): Promise<Container> {
    await spec.known;
    faultPoint("create.mounted");
    const { base } = root.source;
    const containerId = await step("container.restore", () => this.#memory.start(image, spec, filesOf({ ...root, base })));
    faultPoint("create.started");
    return this.#limited(this.#isolate({ containerId }, spec, base), spec);
  }

  /** Adopts the running container of a recorded sandbox, or starts it if it has stopped. */
  async recover(sandbox: LiveSandbox, found: FoundContainer, isRunning: boolean): Promise<void> {
    const { id, root } = sandbox.record;
    const spec = specOf(sandbox.record);
    if (found.range !== undefined) this.#ids.ranges?.claims.retake(id, found.range);
    const started = isRunning ? found : await this.#startAgain(spec, found, root);
    const { containerId } = started;
    sandbox.container = await this.#ready(started, spec, isRunning ? "used" : "new", root?.base);
    const { container } = sandbox;
    inBackground(this.#log, "the exec server of a sandbox could not be taken over", () => this.#oci.resume(container));
    await this.#roots.limit(id, bytesOf(spec));
    await this.#sandboxes.note(sandbox, "recovered", { container_id: containerId });
  }

  /** Starts a container that has stopped; one whose processes were copies, or that has other ids than it can or may have now, is replaced, with the same files. */
  async #startAgain(
    spec: ContainerSpec & Pick<LaunchSpec, "storageGB">,
    { containerId, range }: FoundContainer,
    source: RootSource | undefined,
  ): Promise<Started> {
    const wasCopy = this.#copies.end(containerId);
    const root = source && (await this.#roots.mount(spec, source, bytesOf(spec)));
    if (root && (root.range !== range || wasCopy)) {
      return this.#slots.run(async () => {
        await this.#podman.remove(containerId);
        return { containerId: await this.#podman.run(spec, filesOf({ ...root, base: root.source.base })) };
      });
    }
    await this.#slots.run(() => this.#podman.start(containerId, spec));
    return { containerId };
  }

  /** Ends everything in a sandbox and removes it with its files. Resolves when it is gone. */
  async delete(sandbox: LiveSandbox): Promise<void> {
    await this.#reserve.spend(() => this.#delete(sandbox));
    if (sandbox.record.root) await this.#collectLayers().catch((err) => this.#log.error({ err }, "unused layers could not be removed"));
  }

  /** Can be repeated when it was not finished. */
  async #delete(sandbox: LiveSandbox): Promise<void> {
    await this.#sandboxes.apply(sandbox, "delete");
    faultPoint("remove.marked");
    this.endActivities(sandbox, new SandgateError("not_found", "the sandbox was deleted", { reason: "no_such_sandbox" }));
    await this.removeContainer(sandbox.record.id);
    sandbox.container = undefined;
    faultPoint("remove.files");
    await this.#sandboxes.remove(sandbox);
  }

  /** Removes a sandbox's container, if there is one, with all its files. */
  async removeContainer(sandboxId: string): Promise<void> {
    await inSlot(this.#removals, () => this.#remove(sandboxId));
  }

  async #remove(sandboxId: string): Promise<void> {
    await step("container.remove", () => this.#podman.removeOf(sandboxId));
    this.#meetings.remove(sandboxId);
    this.#resolvers.remove(sandboxId);
    faultPoint("remove.container");
    this.#host.groups?.sweep();
    await step("files.remove", () => this.#roots.remove(sandboxId));
  }

  /** Restarts a sandbox whose container stopped unexpectedly. Its commands end; its files are kept. */
  restartLost(sandbox: LiveSandbox): void {
    inBackground(this.#log, "a sandbox that stopped could not be restarted", () => this.#restartLost(sandbox));
  }

  async #restartLost(sandbox: LiveSandbox): Promise<void> {
    const lost = sandbox.container;
    await this.#sandboxes.exclusive(sandbox.record.id, async () => {
      const { record, container } = sandbox;
      // Another caller may have noticed the loss first and restarted it.
      if (record.status !== "running" || !container || container !== lost) return;
      this.#log.warn({ event: "sandbox_lost", sandbox: record.id }, "a sandbox stopped by itself and is restarted");
      sandbox.container = undefined;
      this.endActivities(sandbox, notRunning("it stopped by itself"));
      try {
        await this.recover(sandbox, { containerId: container.id, range: this.#ids.ranges?.claims.of(record.id) }, false);
      } catch (error) {
        this.#log.error({ err: error, sandbox: record.id }, "a sandbox could not be started again");
        await this.#sandboxes.note(sandbox, "lost", { error: "the sandbox stopped and could not be started again" });
      }
    });
  }

  /** Stops the processes of a sandbox for a shutdown; it is started again with the worker. */
  async stop(sandbox: LiveSandbox): Promise<void> {
    const { container } = sandbox;
    if (!container) return;
    sandbox.container = undefined;
    await this.#slots.run(() => this.#podman.stop(container.id));
    await this.#roots.unmount(sandbox.record.id);
  }

  endActivities(sandbox: LiveSandbox, reason: SandgateError): void {
    for (const activity of sandbox.activities) activity.abort(reason);
  }

  /** @param base the image below a container that was not created from an image and so does not know its own. */
  async #ready({ containerId, note }: Started, spec: ContainerSpec, namespace: Namespace, base: BaseImage | undefined): Promise<Container> {
    const { sandboxId, network, isolation, cpus, memoryMiB } = spec;
    const attachment = note && (await this.#networks.begin(note, spec));
    const inspected = await this.#oci.inspect(containerId, { isolation, network, note, networkPid: attachment?.pid });
    if (namespace === "new" && !attachment) await this.#networks.provide(inspected, spec);
    const {
      firstId,
      process: { rlimits = [] },
    } = inspected;
    // Those of a strong sandbox are copies that its runtime has made for its ids.
    if (firstId > 0 && isolation === "standard") for (const file of inspected.ownFiles) chownSync(file, firstId, firstId);
    // In a copy, all of it was done before anything ran.
    const isCopied = isCopy(inspected);
    for (const pid of [...inspected.pids, ...inspected.networkPids]) giveWay(pid);
    const limits = { cpus, memoryMiB, processes: hostProcesses(isolation, this.#processesMax) };
    // What a group that Podman has made does not limit.
    if (inspected.group instanceof GroupV2) inspected.group.complete(memoryMiB);
    const [group] = await Promise.all([
      groupMaker(this.#host, isolation)?.join(sandboxId, inspected, limits),
      network === "outbound" && !isCopied ? closePrivateNetworks(this.#host, inspected.initPid, namespace) : undefined,
      firstId > 0 && !isCopied ? boundUser(inspected.initPid) : undefined,
      attachment?.up,
    ]);
    return {
      ...inspected,
      group: group ?? inspected.group,
      process: { ...inspected.process, ...(base ? { cwd: base.working_dir } : {}), ...(firstId > 0 ? { rlimits: [...rlimits, signalsLimit()] } : {}) },
      writableLayer: (base && this.#roots.writable(sandboxId)) ?? inspected.writableLayer,
    };
  }

  async #discard(sandboxId: string): Promise<void> {
    await this.removeContainer(sandboxId).catch((err) => this.#log.error({ err, sandbox: sandboxId }, "a failed container could not be removed"));
  }
}

/** For each process of a strong sandbox, gVisor takes up to about two of the host's, besides some for itself. */
const hostProcesses = (isolation: Isolation, processes: number): number => (isolation === "strong" ? 3 * processes : processes);

const filesOf = ({ stage: dir, range, base }: ContainerPlace): ContainerFiles => ({ dir, range, base });

const bytesOf = ({ storageGB }: Pick<LaunchSpec, "storageGB">): number => storageGB * GB;

/** Makes the image's working directory if the image does not have it, as Podman does for a container that it makes from an image. */
function provideWorkingDir({ dir, source }: MountedRoot, { process, firstId }: Container): void {
  if (source.layers.length === 0) makeFolderInside(dir, process.cwd, process.user, firstId);
}

function specOf(record: SandboxRecord): Omit<LaunchSpec, "source"> {
  return {
    sandboxId: record.id,
    storageGB: record.storage,
    cpus: record.cpu,
    memoryMiB: record.memory,
    network: record.network,
    isolation: isolationOf(record),
  };
}
