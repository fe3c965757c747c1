/** Starts the containers of sandboxes, and containers without files, which become sandboxes later. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BaseImage } from "../../shared/bus/entries.ts";
import type { Config } from "../../shared/config.ts";
import { faultPoint } from "../../shared/faults.ts";
import { sandboxDefaults } from "../../shared/schemas/sandboxes.ts";
import { step } from "../../shared/tracing/spans.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import { pause } from "../../shared/waiting.ts";
import type { Container } from "../runtime/container/container.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { enterRoot, RootRefused } from "../runtime/container/root.ts";
import type { SeccompFilter } from "../runtime/container/seccomp-filter.ts";
import { makeFolderInside } from "../runtime/filesystem/inside.ts";
import type { Host } from "../runtime/host/host.ts";
import type { Ids } from "../runtime/ids/open.ts";
import { firstIdOf } from "../runtime/ids/ranges.ts";
import type { Podman } from "../runtime/podman/containers.ts";
import type { ContainerFiles, ContainerSpec } from "../runtime/podman/spec.ts";
import { inSlot } from "../slots.ts";
import type { MemoryImages } from "../snapshots/memory.ts";
import { type RootSource, rootOver } from "../store/records.ts";
import type { Urgent } from "../urgent.ts";
import { type Isolator, withFiles } from "./isolator.ts";
import type { Removal } from "./removal.ts";
import type { MountedRoot, Provided, RootPlace, Roots } from "./roots.ts";

const GB = 1024 ** 3;
/** By then, the answer for a sandbox that has started has gone. */
const answerMs = 30;

/** A requested container with its files. */
export interface LaunchSpec extends ContainerSpec {
  readonly storageGB: number;
  readonly source: RootSource;
  /** The number of the image of memory whose processes it starts with; undefined for none. */
  readonly memoryImage?: number;
  /** Before this resolves nothing may run, as nobody would know of it later. */
  readonly known?: Promise<void>;
  /** Called when its files are there, while its container is made; waited for before the end. */
  readonly onFiles?: (root: RootSource) => Promise<void>;
  /** Called when its container has started, before all of it is done. */
  readonly onStarted?: () => void;
}

/** How a container is started. */
interface Start {
  /** What must be there before. */
  readonly ready?: Promise<unknown>;
  readonly onStarted?: (() => void) | undefined;
}

/** A running container, and what its files were made from. */
export interface Launched {
  readonly container: Container;
  readonly root: RootSource;
}

/** A container that was started without files, to become a sandbox. */
export interface Waiting {
  /** As it was without files. */
  readonly container: Container;
  /** Resolves when it has files that were made ahead; undefined when that has failed, and nothing is left of it. */
  readonly furnished?: Promise<Launched | undefined>;
}

/** What a container is made on, and the image below it, if there is one. */
type ContainerPlace = RootPlace & Pick<ContainerFiles, "base">;

interface Parts {
  readonly podman: Podman;
  readonly roots: Roots;
  readonly ids: Ids;
  readonly oci: OciRuntime;
  readonly host: Host;
  readonly filter: SeccompFilter;
  readonly log: Logger;
  readonly urgent: Urgent;
  readonly memory: MemoryImages;
  readonly isolator: Isolator;
  readonly removal: Removal;
  readonly slots: Semaphore;
}

/** How many starts there may be at once. */
export const startSlots = (config: Config): Semaphore => new Semaphore(config.createsAtOnce);

export class Launcher {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Starts a container, isolated and ready for commands. On failure nothing of it is left.
   *
   * @param waiting one that `launchEmpty` has started for this sandbox
   */
  async launch(spec: LaunchSpec, waiting?: Waiting): Promise<Launched> {
    const { urgent, removal } = this.#parts;
    try {
      return await urgent.run(async () => (waiting && (await this.#take(waiting, spec))) ?? (await this.#launchAnew(spec)));
    } catch (error) {
      await removal.discard(spec.sandboxId);
      throw error;
    }
  }

  /** Starts a container that has no files yet. All else is as with `launch`. */
  async launchEmpty(spec: ContainerSpec): Promise<Container> {
    const { podman, roots, oci, ids, removal, slots } = this.#parts;
    try {
      podman.prepare(spec);
      // To show folders with its ids takes a program, which the sandbox need not wait for then.
      if (ids.areGiven) await ids.ranges?.prepare();
      return await inSlot(slots, async () => {
        const place = await roots.placeEmpty(spec);
        const container = await this.#run(spec, { ...place, base: undefined });
        await roots.leavePlace(spec);
        await oci.prepare(container);
        return container;
      });
    } catch (error) {
      await removal.discard(spec.sandboxId);
      throw error;
    }
  }

  /** Does ahead what the next sandbox need not wait for, when the answer for this one has gone: it takes programs, and this one would wait for them. */
  #prepare(): void {
    const { log, ids } = this.#parts;
    if (!ids.areGiven) return;
    inBackground(log, "the user ids of the next sandbox could not be prepared", async () => {
      await pause(answerMs);
      await ids.ranges?.prepare();
    });
  }

  /** Gives a container of `launchEmpty` the files of an image ahead. @returns undefined where it cannot have them: nothing of it is left then */
  async furnish(container: Container, spec: ContainerSpec, image: string): Promise<Launched | undefined> {
    try {
      return await this.#furnish(container, { ...spec, storageGB: sandboxDefaults.storageGB, source: rootOver(image) });
    } catch (error) {
      await this.#parts.removal.discard(spec.sandboxId);
      throw error;
    }
  }

  /**
   * Makes a waiting container that of a sandbox whose files it has.
   *
   * @returns undefined where the image is another one by now, or where its files could not be made: it is of no use then
   */
  async takeReady({ furnished }: Waiting, spec: LaunchSpec): Promise<Launched | undefined> {
    const { roots } = this.#parts;
    const [ahead, { base }] = await Promise.all([furnished, step("sandbox.source", () => roots.provide(spec, spec.source)), spec.known]);
    if (base.id !== ahead?.root.base.id) return undefined;
    faultPoint("create.mounted");
    await roots.limit(spec.sandboxId, bytesOf(spec));
    faultPoint("create.started");
    return ahead;
  }

  /** Makes a waiting container that of a sandbox. @returns undefined where it cannot become that: nothing of it is left then */
  async #take(waiting: Waiting, spec: LaunchSpec): Promise<Launched | undefined> {
    const { roots, removal } = this.#parts;
    if (!waiting.furnished) return this.#furnish(waiting.container, spec);
    const ready = spec.source.layers.length === 0 ? await this.takeReady(waiting, spec) : undefined;
    if (ready) return ready;
    const ahead = await waiting.furnished;
    // In those groups, its exec server would stay.
    if (!ahead || ahead.container.process.user?.additionalGids?.length) {
      await removal.remove(spec.sandboxId);
      return undefined;
    }
    await roots.vacate(spec);
    return this.#furnish(waiting.container, spec);
  }

  /** Gives a container its files. @returns undefined where it cannot have them: nothing of it is left then */
  async #furnish(waiting: Container, spec: LaunchSpec): Promise<Launched | undefined> {
    const { roots, host, oci, removal, log } = this.#parts;
    const provided = await step("sandbox.source", () => roots.provide(spec, spec.source));
    try {
      // Its first process and the exec server have a user already.
      if (!isSuperuser(provided.base)) throw new RootRefused("the image has another user");
      const root = await step("sandbox.files", () => roots.make(spec, provided, bytesOf(spec)));
      await spec.known;
      faultPoint("create.mounted");
      if (waiting.firstId !== (root.range === undefined ? 0 : firstIdOf(root.range))) throw new RootRefused("the files have other ids");
      const additionalGids = await step("container.root", () => enterRoot(host, waiting, root.stage));
      faultPoint("create.started");
      spec.onStarted?.();
      await roots.limit(spec.sandboxId, bytesOf(spec));
      const container = inGroups(withFiles(waiting, provided.base, roots.writable(spec.sandboxId)), additionalGids);
      await oci.joinGroups(container);
      provideWorkingDir(root, container);
      return { container, root: root.source };
    } catch (error) {
      if (!(error instanceof RootRefused)) throw error;
      log.info({ event: "root_refused", sandbox: spec.sandboxId, reason: error.message }, "a prepared container could not be used");
      await removal.remove(spec.sandboxId);
      return undefined;
    }
  }

  async #launchAnew(spec: LaunchSpec): Promise<Launched> {
    const { podman, roots, slots } = this.#parts;
    podman.prepare(spec);
    const provided = await step("sandbox.source", () => roots.provide(spec, spec.source));
    // All of it in one turn: more at once than there are CPUs would only have each of them end later.
    return await inSlot(slots, () => this.#make(spec, provided)).finally(() => this.#prepare());
  }

  async #make(spec: LaunchSpec, provided: Provided): Promise<Launched> {
    const { roots, log, oci } = this.#parts;
    const place = spec.memoryImage === undefined ? roots.place(spec, provided) : undefined;
    const making = step("sandbox.files", () => roots.make(spec, provided, bytesOf(spec)));
    const noted = making.then(({ source }) => spec.onFiles?.(source));
    noted.catch(() => {}); // Whoever needs them waits for them.
    try {
      const container = await (spec.memoryImage === undefined
        ? this.#run(spec, { ...(place ?? (await making)), base: provided.base }, { ready: Promise.all([making, spec.known]), onStarted: spec.onStarted })
        : this.#restore(spec.memoryImage, spec, await making));
      await roots.limit(spec.sandboxId, bytesOf(spec));
      // What starts the sandbox's commands comes only now that these have their limits. The first of them waits for it.
      inBackground(log, "the exec server of a sandbox could not be started", () => oci.prepare(container));
      const root = await making;
      provideWorkingDir(root, container);
      await noted;
      return { container, root: root.source };
    } finally {
      // What is made of them is removed only when nothing is being made any more.
      await noted.catch(() => {});
    }
  }

  /**
   * Starts a container and isolates it. Podman notes it while its files are made; with crun, most of the isolation is done while that
   * makes it and Podman notes that it was started.
   */
  async #run(spec: ContainerSpec, at: ContainerPlace, { ready, onStarted }: Start = {}): Promise<Container> {
    const { host, filter, podman, isolator } = this.#parts;
    const isCrun = host.runtime === "crun" && spec.isolation === "standard";
    const over = new AbortController();
    // Podman is told first.
    const prepared = nextTurn().then(() => (isCrun ? isolator.prepare(spec) : undefined));
    let early: Promise<Container> | undefined;
    const onCreated = async (id: string): Promise<void> => {
      faultPoint("create.noted");
      await ready;
      if (ready) faultPoint("create.mounted");
      if (!isCrun) return;
      early = Promise.all([prepared, nextTurn()]).then(() => isolator.isolateEarly(id, spec, at.base, over.signal));
      early.catch(() => {}); // It is of no interest when Podman fails.
    };
    // They are waited for only once Podman has noted, or started, the container.
    for (const each of [ready, prepared]) each?.catch(() => {});
    try {
      const containerId = await step("container.start", () => podman.run(spec, filesOf(at), onCreated));
      faultPoint("create.started");
      onStarted?.();
      if (isCrun) filter.takeFrom(containerId);
      return await (early ?? isolator.isolate({ containerId }, spec, at.base));
    } finally {
      over.abort();
      await prepared.catch(() => {});
      isolator.forget(spec);
    }
  }

  /** The same with the processes of an image of memory. */
  async #restore(image: number, spec: LaunchSpec, root: MountedRoot): Promise<Container> {
    const { memory, isolator } = this.#parts;
    await spec.known;
    faultPoint("create.mounted");
    const { base } = root.source;
    const containerId = await step("container.restore", () => memory.start(image, spec, filesOf({ ...root, base })));
    faultPoint("create.started");
    return isolator.isolate({ containerId }, spec, base);
  }
}

export const filesOf = ({ stage: dir, range, base }: ContainerPlace): ContainerFiles => ({ dir, range, base });

export const bytesOf = ({ storageGB }: Pick<LaunchSpec, "storageGB">): number => storageGB * GB;

const isSuperuser = ({ user }: BaseImage): boolean => /^(0|root)?(:(0|root)?)?$/.test(user);

function inGroups(container: Container, additionalGids: readonly number[]): Container {
  const { user = { uid: 0, gid: 0 }, ...process } = container.process;
  return { ...container, process: { ...process, user: { ...user, additionalGids } } };
}

/** Makes the image's working directory if the image does not have it, as Podman does for a container that it makes from an image. */
function provideWorkingDir({ dir, source }: MountedRoot, { process, firstId }: Container): void {
  if (source.layers.length === 0) makeFolderInside(dir, process.cwd, process.user, firstId);
}
