/**
 * Takes and restores the memory of sandboxes with their processes, by CRIU in the privileged helper. A copy is a container like all
 * others, with its own name, network, limits and files, in which the processes of the image continue.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Type, { type Static } from "typebox";
import { Count } from "../../shared/bus/contract/fields.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { attempt } from "../../shared/util/attempt.ts";
import type { Logger } from "../../shared/util/log.ts";
import { boundNamespaces } from "../runtime/container/bounds.ts";
import { type Container, waitingIn } from "../runtime/container/container.ts";
import type { Copies } from "../runtime/container/copies.ts";
import { GroupV2, groupOfContainer, processFolderOf } from "../runtime/container/groups.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import type { Standstill } from "../runtime/container/snapshot-driver.ts";
import { isIdleServer } from "../runtime/exec-server/server.ts";
import { groupMaker, type Host } from "../runtime/host/host.ts";
import { attachNetwork } from "../runtime/network/attachment.ts";
import { isAttached } from "../runtime/network/network.ts";
import type { Podman } from "../runtime/podman/containers.ts";
import type { ContainerFiles, ContainerSpec } from "../runtime/podman/spec.ts";
import type { PrivilegedHelper } from "../runtime/privileged/helper.ts";
import { processesByNamespace } from "../runtime/process/proc.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { CarriedSession, type SessionsForImage } from "../sessions/carried.ts";
import { sessionsOf, withSessions } from "../sessions/travelling.ts";
import type { MemorySource } from "../store/records.ts";
import type { LayerArchive } from "./archive.ts";
import { MemoryFailed, type MemoryImages, type TakenImage } from "./memory.ts";
import type { MemoryTransfers } from "./transfers.ts";

const Note = Type.Object({
  bytes: Count,
  identity: Type.Optional(Count),
  sessions: Type.Array(CarriedSession),
});
/** Of an image, beside what the helper keeps of it. */
type Note = Static<typeof Note>;

const checked = checker(Note);

interface Parts {
  readonly helper: PrivilegedHelper;
  readonly host: Host;
  readonly oci: OciRuntime;
  readonly podman: Podman;
  readonly copies: Copies;
  readonly log: Logger;
  /** A folder with a file for each image that this worker has had made, which tells the sessions that the image includes. */
  readonly dir: string;
  readonly transfers: MemoryTransfers;
  readonly archive: Pick<LayerArchive, "read">;
  /** Aborts fetching images. */
  readonly signal: AbortSignal;
  /** What the disk that holds the images keeps free. */
  readonly floorBytes: number;
}

export class ProcessImages implements MemoryImages {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
    mkdirSync(parts.dir, { recursive: true, mode: 0o700 });
  }

  async refusal({ activities }: LiveSandbox, container: Container): Promise<string | undefined> {
    if (container.isolation === "strong") return "the memory of a strong sandbox is that of its own kernel";
    if (container.firstId === 0) return "the sandbox shares the user ids of others";
    if (container.meetingPlace === undefined) return "the sandbox was made by an earlier version";
    if ([...activities].some(({ isTied }) => isTied))
      return "a session is open in a terminal that the worker has, because it was started without an exec server for it";
    const members = processesByNamespace().get(container.pidNamespace) ?? [];
    if (!members.some((pid) => pid !== container.initPid && !isIdleServer(container, pid))) return "nothing runs in the sandbox";
    const { bavail, bsize } = await statfs(this.#parts.dir);
    const { memoryBytes = 0 } = container.group?.usage() ?? {};
    return bavail * bsize - this.#parts.floorBytes < memoryBytes ? "the worker's disk has no room for it" : undefined;
  }

  standstill(image: number, sessions: SessionsForImage, isHeld = false): Standstill {
    const { oci } = this.#parts;
    if (!isHeld) return { during: (container, action) => oci.apart(container, () => this.#take(image, container, sessions, action)) };
    // Nothing of it may run between the dump and the hold.
    return {
      during: (container, action) => oci.holdApart(container, (stand) => this.#take(image, container, sessions, () => action().then(stand))),
    };
  }

  about(image: number): TakenImage {
    const { bytes, identity } = this.#note(image);
    return { bytes, ...(identity === undefined ? {} : { identity }) };
  }

  pack(image: number, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return withSessions(this.sessionsIn(image), this.#parts.transfers.export(image, signal));
  }

  readonly fetchRefusal = undefined;

  async fetch({ image, from }: MemorySource): Promise<void> {
    if (!from) return;
    const { archive, helper, transfers, signal } = this.#parts;
    writeFileSync(this.#noteOf(image), "");
    try {
      // An attempt before a restart of this worker may have been complete.
      await helper.removeMemory(image);
      const { sessions, rest } = await sessionsOf(archive.read({ workerId: from.workerId, layerId: from.layer }, signal));
      await transfers.import(image, from.identity, rest);
      writeFileSync(this.#noteOf(image), JSON.stringify({ bytes: 0, sessions } satisfies Note));
      faultPoint("memory.fetched");
    } catch (error) {
      await this.#remove(image);
      signal.throwIfAborted();
      throw new MemoryFailed(SandgateError.from(error).message, { cause: error });
    }
  }

  async #take(image: number, container: Container, sessions: SessionsForImage, action: () => Promise<void>): Promise<{ readonly pauseMs: number }> {
    try {
      const why = await sessions.hold();
      if (why !== undefined) throw new MemoryFailed(why);
      return await this.#dump(image, container, sessions, action);
    } finally {
      sessions.letGo();
    }
  }

  async #dump(image: number, { initPid }: Container, sessions: SessionsForImage, action: () => Promise<void>): Promise<{ readonly pauseMs: number }> {
    const { helper, log } = this.#parts;
    writeFileSync(this.#noteOf(image), "");
    const startedAtMs = performance.now();
    const pauseMs = (): number => performance.now() - startedAtMs;
    const failed = (error: unknown): never => {
      throw failureOf(error, pauseMs());
    };
    await helper.dumpMemory(image, initPid).catch(failed);
    let carried: readonly CarriedSession[];
    try {
      faultPoint("snapshot.dumped");
      await action();
      // By now, all that they have written has been read, unless their clients have no room for it.
      carried = sessions.carried();
    } catch (error) {
      await helper.resumeMemory(image).catch(() => {}); // It runs on in any case.
      await this.#remove(image);
      throw error;
    }
    const bytes = await helper.resumeMemory(image).catch(failed as (error: unknown) => never);
    const paused = pauseMs();
    const identity = await helper.identifyMemory(image).catch((err: unknown) => {
      log.info({ err, image }, "an image of memory cannot leave this worker");
      return undefined;
    });
    const note: Note = { bytes, ...(identity === undefined ? {} : { identity }), sessions: [...carried] };
    await writeFile(this.#noteOf(image), JSON.stringify(note));
    return { pauseMs: paused };
  }

  startRefusal(image: number): string | undefined {
    return readdirSync(this.#parts.dir).includes(String(image)) ? undefined : "the memory of the snapshot is gone";
  }

  async start(image: number, spec: ContainerSpec, files: ContainerFiles): Promise<string> {
    const { helper, host, podman, copies } = this.#parts;
    if (files.range === undefined) throw new MemoryFailed("the sandbox would share the user ids of others");
    const containerId = await podman.hold(spec, files);
    faultPoint("restore.held");
    const waiting = waitingIn(host, containerId);
    const { pid } = waiting;
    const group = groupOfContainer(containerId, pid);
    const folder = processFolderOf(pid);
    if (!(group instanceof GroupV2) || folder === undefined) throw new MemoryFailed("its container has no control group of its own");
    copies.prepare(containerId, { pid, group: folder });
    // All of it holds before anything runs.
    group.complete(spec.memoryMiB);
    await Promise.all([
      boundNamespaces(host, { pid, network: spec.network, hasOwnIds: true, namespace: "new" }),
      isAttached(host, spec) ? attachNetwork(waiting).then(({ up }) => up) : undefined,
    ]);
    const first = await helper.restoreMemory(image, pid).catch((error: unknown) => {
      throw failureOf(error, 0);
    });
    copies.begin(containerId, first);
    faultPoint("restore.copied");
    return containerId;
  }

  connect({ doorPid, initPid }: Container): Promise<void> {
    return this.#parts.helper.connectCopy(doorPid, initPid);
  }

  sessionsIn(image: number): readonly CarriedSession[] {
    return this.#note(image).sessions;
  }

  /** What is noted of an image; of one that an earlier version has had made, or that is not whole, that it includes no sessions. */
  #note(image: number): Note {
    return attempt(() => checked(JSON.parse(readFileSync(this.#noteOf(image), "utf8")))) ?? { bytes: 0, sessions: [] };
  }

  async collect(inUse: () => ReadonlySet<number>): Promise<void> {
    for (const name of readdirSync(this.#parts.dir)) if (!inUse().has(Number(name))) await this.#remove(Number(name));
  }

  async #remove(image: number): Promise<void> {
    const { helper, log } = this.#parts;
    try {
      await helper.removeMemory(image);
      rmSync(this.#noteOf(image), { force: true });
    } catch (err) {
      log.error({ err, image }, "an image of memory could not be removed");
    }
  }

  #noteOf(image: number): string {
    return join(this.#parts.dir, String(image));
  }
}

/** Where files alone may do, the reason that the helper gives. */
function failureOf(error: unknown, pauseMs: number): unknown {
  const { code, message } = SandgateError.from(error);
  if (code === "unprocessable") return new MemoryFailed(message, { cause: error, pauseMs });
  return code === "unavailable" || code === "internal_error" ? new MemoryFailed("the privileged helper failed", { cause: error, pauseMs }) : error;
}

/** Why a worker cannot take the memory of sandboxes; undefined if it can. */
export async function whyNot(host: Host, helper: PrivilegedHelper | undefined, areIdsGiven: boolean): Promise<string | undefined> {
  if (!helper) return "this worker is not a service of systemd, and only such a one can take memory";
  if (host.runtime !== "crun" || host.controlGroups !== "v2" || groupMaker(host, "standard"))
    return "this worker's machine has no control groups of cgroup v2 for it";
  if (!areIdsGiven) return "sandboxes of this worker share their user ids";
  if (host.networkFilter !== "nft") return "this worker's machine has no nftables";
  return helper.checkMemory().then(
    () => undefined,
    (error: unknown) => `this worker's machine cannot take memory: ${SandgateError.from(error).message}`,
  );
}
