/**
 * The memory of sandboxes: the seam between snapshots and what can take the memory of running processes. An image of memory has
 * a number on its worker. It belongs to the files of one snapshot. Others continue from it where their machine is like the one that
 * it was taken on.
 */
import { randomInt } from "node:crypto";
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { changeRefusal, decideMemory, type MemoryDecision } from "../../shared/memory.ts";
import type { Container } from "../runtime/container/container.ts";
import type { Standstill } from "../runtime/container/snapshot-driver.ts";
import type { ContainerFiles, ContainerSpec } from "../runtime/podman/spec.ts";
import type { LiveSandbox, Sandboxes } from "../sandboxes/registry.ts";
import type { CarriedSession, SessionsForImage } from "../sessions/carried.ts";
import type { MemorySource, SandboxRecord } from "../store/records.ts";
import type { Snapshots } from "./registry.ts";

/** What a worker can do about memory. */
export interface MemoryImages {
  /** Why the memory of a sandbox cannot be taken now, as a sentence without its full stop; undefined if it can. Not asked where nobody wants it. */
  refusal(sandbox: LiveSandbox, container: Container): string | undefined | Promise<string | undefined>;

  /**
   * A standstill in which the memory is taken as well, as the image with this number. The action that it is given copies the files.
   * With `isHeld`, the container is held when it is over: nothing runs there until `Standstills.release`.
   * It takes all or nothing: when `during` fails, there is no image, and the sandbox runs on. It throws `MemoryFailed` where a
   * snapshot of files alone may still succeed.
   *
   * @param sessions those of the sandbox
   */
  standstill(image: number, sessions: SessionsForImage, isHeld?: boolean): Standstill;

  /** What is known of an image that has been taken. */
  about(image: number): TakenImage;

  /** An image as others may have it. @throws {SandgateError} `unprocessable` where it cannot leave this worker */
  pack(image: number, signal: AbortSignal): AsyncIterable<Uint8Array>;

  /** Why no image of another worker can be had here; undefined if one can. */
  readonly fetchRefusal: string | undefined;

  /** Fetches an image that is not here yet. @throws {MemoryFailed} nothing is left of it then */
  fetch(source: MemorySource): Promise<void>;

  /** Why a sandbox cannot be started from an image; undefined if it can. */
  startRefusal(image: number): string | undefined;

  /**
   * Starts a container with the processes of an image, in place of `Podman.run`. Before they continue, `MeetingPlaces.make` must
   * have given the sandbox a generation of its own.
   *
   * @param files mounted, as they were when the image was taken
   * @returns the container's id; on failure, what there is of the container is removed by the caller, by its name
   * @throws {MemoryFailed} where a start from the files alone may still succeed.
   */
  start(image: number, spec: ContainerSpec, files: ContainerFiles): Promise<string>;

  /** Gives a copy the network that its container has been given again. @throws {Error} */
  connect(copy: Container): Promise<void>;

  /** The sessions that an image includes. */
  sessionsIn(image: number): readonly CarriedSession[];

  /** Removes the images that nothing refers to, those of an earlier process included. @param inUse is asked again before each removal */
  collect(inUse: () => ReadonlySet<number>): Promise<void>;
}

/** How large an image is, and the number by which other machines know it, if it can leave this one. */
export interface TakenImage {
  readonly bytes: number;
  readonly identity?: number;
}

/** Memory could not be taken or restored after all. The message says why, like a refusal. */
export class MemoryFailed extends Error {
  /** How long the processes stood still for it. */
  readonly pauseMs: number;

  constructor(why: string, details: { readonly cause?: unknown; readonly pauseMs?: number } = {}) {
    super(why, { cause: details.cause });
    this.pauseMs = details.pauseMs ?? 0;
  }
}

/** Of a worker that can do nothing about it. @param why as a refusal tells it */
export function noMemoryImages(why: string): MemoryImages {
  const fail = (): never => {
    throw new MemoryFailed(why);
  };
  return {
    refusal: () => why,
    standstill: () => ({ during: async () => fail() }),
    about: () => fail(),
    pack: () => fail(),
    fetchRefusal: why,
    fetch: async () => fail(),
    startRefusal: () => why,
    start: async () => fail(),
    connect: async () => fail(),
    sessionsIn: () => [],
    collect: async () => {},
  };
}

/** So large that no number is ever used twice, and exact in JSON. */
const imageNumbersMax = 2 ** 47;

/** A number for a new image. */
export const newMemoryImage = (): number => randomInt(1, imageNumbersMax);

/** The images that snapshots of this worker, and sandboxes that have not started yet, need. */
export function memoryInUse(snapshots: Snapshots, sandboxes: Sandboxes): Set<number> {
  const all = [...[...snapshots.all()].map((record) => record.memory_image), ...[...sandboxes.all()].map(({ record }) => record.memory_from?.image)];
  return new Set(all.filter((image) => image !== undefined));
}

/** Whether a snapshot is to include memory. @throws {SandgateError} `unprocessable` when it must and cannot */
export async function planSnapshot(
  memory: Pick<MemoryImages, "refusal">,
  sandbox: LiveSandbox,
  container: Container,
  { quick, memory_wish: wish = "skip" }: Pick<Request<"snapshot">, "quick" | "memory_wish">,
): Promise<MemoryDecision> {
  if (wish === "skip") return decideMemory(wish, undefined);
  return decideMemory(wish, quick ? "a quick snapshot does not include memory" : await memory.refusal(sandbox, container));
}

/** What the record of a restored sandbox says about memory. */
type RestoredMemory = Pick<SandboxRecord, "memory_from" | "memory_restored" | "memory_reason">;

interface Restoring {
  readonly workerId: string;
  readonly memory: Pick<MemoryImages, "startRefusal" | "fetchRefusal">;
  readonly snapshots: Pick<Snapshots, "get">;
}

/** Whether a sandbox is to start with the memory of its snapshot. @throws {SandgateError} `unprocessable` when it must and cannot */
export function planRestore({ workerId, memory, snapshots }: Restoring, call: Request<"restore">): RestoredMemory {
  const { memory_wish: wish = "skip" } = call;
  const snapshot = call.worker_id === workerId ? snapshots.get(call.snapshot_id) : undefined;
  const image = snapshot?.account_id === call.account_id ? snapshot.memory_image : undefined;
  const changed = changeRefusal(call.manifest, call);
  if (changed !== undefined) return unrestored(decideMemory(wish, changed));
  const found = sourceOf(memory, image, call);
  const decision = decideMemory(wish, "refusal" in found ? found.refusal : undefined);
  return decision.memory && "image" in found ? { memory_restored: true, memory_from: { ...found, wish } } : unrestored(decision);
}

/** Whether the copy of a sandbox that comes from another worker is to start with its memory. */
export function planArrival(memory: Restoring["memory"], { memory: memory_taken, memory_reason, worker_id, manifest }: SnapshotEntry): RestoredMemory {
  const found = sourceOf(memory, undefined, { memory_taken, memory_reason, worker_id, manifest });
  return "image" in found
    ? { memory_restored: true, memory_from: { ...found, wish: "prefer" } }
    : unrestored({ memory: false, reason: memory_reason ?? found.refusal });
}

interface Sources extends Pick<SnapshotEntry, "worker_id" | "manifest"> {
  readonly memory_taken?: boolean | undefined;
  readonly memory_reason?: string | undefined;
}

/** Where the memory of a snapshot is to be had. @param own the number of its image on this worker */
function sourceOf(
  memory: Restoring["memory"],
  own: number | undefined,
  { memory_taken, memory_reason, worker_id, manifest }: Sources,
): Omit<MemorySource, "wish"> | { readonly refusal: string } {
  if (!memory_taken) return { refusal: `the snapshot does not include memory${memory_reason ? `: ${memory_reason}` : ""}` };
  const gone = own === undefined ? undefined : memory.startRefusal(own);
  if (own !== undefined && gone === undefined) return { image: own };
  const refusal = gone ?? "the memory of the snapshot is not on the worker that restores it";
  const stored = manifest.memory_image;
  if (!stored) return { refusal };
  if (memory.fetchRefusal !== undefined) return { refusal: memory.fetchRefusal };
  return { image: newMemoryImage(), from: { workerId: worker_id, layer: stored.id, identity: stored.identity } };
}

/** What the record of a sandbox without the memory of its snapshot says about that. */
export function unrestored(decision: MemoryDecision): RestoredMemory {
  const reason = decision.memory ? undefined : decision.reason;
  return { memory_restored: false, ...(reason === undefined ? {} : { memory_reason: reason }) };
}
