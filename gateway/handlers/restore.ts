/** Creates a sandbox from a snapshot. */

import type { Manifest, SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import { NoResponder } from "../../shared/bus/failures.ts";
import { SandgateError } from "../../shared/errors.ts";
import { changeRefusal, decideMemory, type MemoryWish } from "../../shared/memory.ts";
import { isFitting } from "../../shared/schemas/environment.ts";
import { type Isolation, type SandboxInfo, stricter } from "../../shared/schemas/sandboxes.ts";
import type { RestoreBody } from "../../shared/schemas/snapshots.ts";
import type { Answer, By, Call, Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { onlyItsOwn, type Reach } from "../fleet/placement.ts";
import { madeBefore, present, refuseBadImage, withReservation } from "./sandboxes.ts";

const bytesPerGB = 1024 ** 3;

/** The caller's settings for the new sandbox; undefined ones are taken from the snapshot. */
export interface SandboxWanted {
  readonly name: string | undefined;
  readonly image: string | undefined;
  readonly cpu: number | undefined;
  readonly memory: number | undefined;
  readonly storage?: number | undefined;
  /** Added to those of the snapshot, and overriding them. */
  readonly env_vars?: Readonly<Record<string, string>> | undefined;
  readonly memoryWish: MemoryWish | undefined;
  readonly wait: boolean;
}

/** The caller, and the reservation for the new sandbox. */
export interface RestoreFor {
  readonly by: By;
  readonly caller: Caller;
  readonly reservationId: string;
}

export async function restoreSnapshot(context: GatewayContext, { exchange, by, caller, id, body }: Call<unknown, RestoreBody>): Promise<Answer<SandboxInfo>> {
  const { name, image, resources, env_vars, memory: memoryWish, wait_for_ready: wait = true } = body;
  refuseBadImage(context, image);
  const asked = { cpu: resources?.cpus, memory: resources?.memory, storage: resources?.storage };
  const wanted: SandboxWanted = { name, image, ...asked, env_vars, memoryWish, wait };
  return context.idempotency.answer(exchange, {
    accountId: by.account_id,
    wanted: { restore: { snapshot_id: id, ...wanted } },
    run: async (reservationId) => {
      const snapshot = await context.snapshots.find(id, by.account_id);
      refuseNotReady(snapshot);
      return withReservation(context, caller, reservationId, () => restore(context, { by, caller, reservationId }, snapshot, wanted));
    },
    recover: (reservationId) => madeBefore(context, by, reservationId, wait ? "restore" : undefined),
    show: (entry) => {
      exchange.audited = { made: [entry.id] };
      return present(entry);
    },
  });
}

/**
 * Has a worker that can access the snapshot's layers create a sandbox from them.
 *
 * @throws {SandgateError} `unavailable` when there is no such worker, `unprocessable`, otherwise as for a new sandbox
 */
export async function restore(
  context: GatewayContext,
  { by, caller, reservationId }: RestoreFor,
  snapshot: SnapshotEntry,
  wanted: SandboxWanted,
): Promise<SandboxEntry> {
  const { id, worker_id, manifest } = snapshot;
  const settings = settingsOf(manifest, wanted);
  refuseTooSmall(manifest, settings.storage);
  if (!isFitting(settings.env_vars)) throw new SandgateError("invalid_request", "env_vars are too many or too long together with those of the snapshot");
  const { name, image, memoryWish: memory_wish = "prefer", wait } = wanted;
  const isolation = isolationFor(context, caller, manifest);
  const memory = { memory_wish, memory_taken: snapshot.memory, memory_reason: snapshot.memory_reason };
  const made = { name, snapshot_id: id, worker_id, manifest, image, ...settings, ...(isolation === "strong" ? { isolation } : {}), ...memory, wait };
  const call = { ...by, key_id: caller.limitKey, ...made, reservation_id: reservationId, peer: context.peers.peer };
  const reach = reachOf(snapshot, memory_wish);
  try {
    return context.sandboxes.note(await context.workers.placeRestored({ worker_id, reach }, call));
  } catch (error) {
    throw error instanceof NoResponder ? onlyItsOwn(reach, "is gone or restarting") : error;
  }
}

function reachOf({ memory, temporary, archived, manifest }: SnapshotEntry, wish: MemoryWish): Reach {
  if (temporary) return "temporary";
  return memory && wish === "require" && !manifest.memory_image ? "memory" : archived;
}

/** Of a sandbox made from another one, or from its snapshot. */
function isolationFor({ config }: GatewayContext, { account }: Caller, { isolation }: Pick<Manifest, "isolation">): Isolation {
  return stricter(isolation, account.isolation, config.isolation);
}

/**
 * Whether a snapshot that is taken for a copy is to include memory: not where that could not continue in the copy.
 *
 * @throws {SandgateError} `unprocessable` when it must
 */
export function wishForCopy(context: GatewayContext, caller: Caller, source: SandboxEntry, wanted: SandboxWanted): MemoryWish {
  const { image, cpu, memory, memoryWish: wish = "prefer" } = wanted;
  const gets = { ...settingsOf({ ...source, env_vars: {} }, { cpu, memory }), image, isolation: isolationFor(context, caller, source) };
  return decideMemory(wish, changeRefusal({ ...source, env_vars: {} }, gets)).memory ? wish : "skip";
}

/** The snapshot's settings, overridden by those of the caller. */
export function settingsOf(
  manifest: Pick<Manifest, "cpu" | "memory" | "storage" | "env_vars">,
  wanted: Pick<SandboxWanted, "cpu" | "memory" | "storage" | "env_vars">,
) {
  return {
    cpu: wanted.cpu ?? manifest.cpu,
    memory: wanted.memory ?? manifest.memory,
    storage: wanted.storage ?? manifest.storage,
    env_vars: { ...manifest.env_vars, ...wanted.env_vars },
  };
}

/** Refuses storage smaller than the layers, which count towards it and cannot shrink. @throws {SandgateError} `unprocessable`. */
export function refuseTooSmall({ layers }: Pick<Manifest, "layers">, storageGB: number): void {
  const usedBytes = layers.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  if (storageGB * bytesPerGB >= usedBytes) return;
  const usedGB = Math.ceil((usedBytes / bytesPerGB) * 10) / 10;
  throw new SandgateError("unprocessable", `storage of ${storageGB} GB is less than the ${usedGB} GB that the snapshot uses`, { reason: "storage_too_small" });
}

function refuseNotReady({ status }: SnapshotEntry): void {
  if (status !== "ready") throw new SandgateError("conflict", `the snapshot is not ready, it is in state "${status}"`);
}
