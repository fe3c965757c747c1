/** Takes a snapshot of a running sandbox. */
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Manifest, SnapshotEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { step } from "../../shared/tracing/spans.ts";
import { derivedName, newId } from "../../shared/util/ids.ts";
import { outsideTrace } from "../../shared/util/trace-context.ts";
import type { WorkerContext } from "../context.ts";
import { faultPoint } from "../faults.ts";
import type { Container } from "../runtime/container/container.ts";
import type { Consistency } from "../runtime/container/snapshot-driver.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { unknownBase } from "../store/records.ts";
import { type CapturedContainer, captureLayer } from "./capture.ts";
import { layerUsers } from "./layers.ts";
import { sizesOf } from "./sizes.ts";

/** @throws {SandgateError} `conflict`, `insufficient_storage`; nothing is left of the attempt then. */
export async function takeSnapshot(context: WorkerContext, sandbox: LiveSandbox, call: Request<"snapshot">): Promise<SnapshotEntry> {
  const { snapshots, log } = context;
  const container = runningContainer(sandbox);
  await refuseWhenFull(context, sandbox, container);
  const layerId = newId("layer");
  const consistency: Consistency = call.quick ? "crash" : "application";
  const record = newRecord(context, sandbox, call, layerId);
  try {
    await snapshots.begin(record);
    faultPoint("snapshot.begun");
    const base = baseOf(context, sandbox, container);
    base.catch(() => {}); // Awaited below, after the copy.
    const captured = await step("snapshot.capture", () => captureLayer(context, sandbox, container, { layerId, consistency }));
    faultPoint("snapshot.layer");
    const [, ...below] = record.manifest.layers;
    const manifest = { ...record.manifest, base: await base, layers: [{ id: layerId, size_bytes: captured.sizeBytes }, ...below] };
    const found = {
      size_bytes: captured.sizeBytes,
      ...sizesOf(context, { manifest }, layerUsers(snapshots, context.sandboxes)),
      memory: captured.memory,
      pause_ms: Math.round(captured.pauseMs * 10) / 10,
      manifest,
    };
    const whole = await step("snapshot.publish", () => snapshots.complete(record.id, found));
    faultPoint("snapshot.published");
    // Done later, one after another, for all calls.
    if (whole.archived === "pending") outsideTrace(() => context.replicator.add(whole));
    context.counters.notePause(whole.pause_ms);
    log.info(
      {
        event: "snapshot_taken",
        snapshot: whole.id,
        sandbox: whole.source_sandbox_id,
        consistency,
        pause_ms: whole.pause_ms,
        bytes: whole.size_bytes,
      },
      "a snapshot was taken",
    );
    return whole;
  } catch (error) {
    await undo(context, record);
    throw error;
  }
}

function runningContainer({ container }: LiveSandbox): CapturedContainer {
  if (!container) throw new SandgateError("unavailable", "the sandbox is being started again; try again");
  if (!container.writableLayer)
    throw new SandgateError("unprocessable", "this host's storage driver has no layers that can be copied", { reason: "not_supported" });
  return container as CapturedContainer;
}

/** A copy may take as much space as the sandbox's own files, and must leave the host's disk above its floor. */
async function refuseWhenFull({ usage, storages }: WorkerContext, sandbox: LiveSandbox, { writableLayer }: CapturedContainer): Promise<void> {
  const isShared = storages.volumeOf(writableLayer) !== undefined;
  if (sandbox.diskStale && !isShared) await usage.measureDisk(sandbox);
  const shortage = usage.diskShortage(isShared ? undefined : sandbox.layer);
  if (shortage) throw new SandgateError("insufficient_storage", `${shortage} for a snapshot`);
}

function newRecord({ workerId, config }: WorkerContext, { record }: LiveSandbox, call: Request<"snapshot">, layerId: string): SnapshotEntry {
  const id = newId("snapshot");
  const { image, cpu, memory, storage, network, isolation, env_vars } = record;
  const base = record.root?.base ?? unknownBase;
  const layers = [{ id: layerId, size_bytes: 0 }, ...(record.root?.layers ?? [])];
  const manifest: Manifest = { image, base, layers, cpu, memory, storage, network, ...(isolation ? { isolation } : {}), env_vars };
  return {
    id,
    name: call.name ?? derivedName(record.name, "snap", id),
    account_id: record.account_id,
    worker_id: workerId,
    source_sandbox_id: record.id,
    source_sandbox_name: record.name,
    status: "creating",
    created_at_ms: Date.now(),
    consistency: call.quick ? "crash" : "application",
    size_bytes: 0,
    memory: false,
    pause_ms: 0,
    archived: config.snapshotArchive ? "pending" : "local",
    attempt_id: call.attempt_id,
    ...(record.root?.origin === undefined ? {} : { origin: record.root.origin }),
    manifest,
  };
}

/** The image below the sandbox's own layers. */
async function baseOf({ imageStore, images, log }: WorkerContext, { record }: LiveSandbox, container: Container): Promise<Manifest["base"]> {
  const base = record.root ? record.root.base : (await imageStore.ofContainer(container.id)).base;
  // A failure must not fail the snapshot: the image of another machine is not in this storage at all.
  await images.hold(base.id).catch((err) => log.debug({ err, image: base.id }, "the image below a snapshot is not kept"));
  return base;
}

async function undo({ snapshots, log, collectLayers }: WorkerContext, { id }: SnapshotEntry): Promise<void> {
  try {
    await snapshots.discard(id);
    await collectLayers();
  } catch (err) {
    log.error({ err, snapshot: id }, "a failed snapshot could not be removed");
  }
}
