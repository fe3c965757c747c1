/** Takes a snapshot of a running sandbox. */
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Manifest, SnapshotEntry } from "../../shared/bus/entries.ts";
import { memoryLayerId } from "../../shared/bus/snapshot-layers.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import { decideMemory, type MemoryDecision } from "../../shared/memory.ts";
import { step } from "../../shared/tracing/spans.ts";
import { derivedName, newId } from "../../shared/util/ids.ts";
import { outsideTrace } from "../../shared/util/trace-context.ts";
import type { WorkerContext } from "../context.ts";
import type { Container } from "../runtime/container/container.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { unknownBase } from "../store/records.ts";
import { type CapturedContainer, type CapturedLayer, captureLayer } from "./capture.ts";
import { layerUsers } from "./layers.ts";
import { MemoryFailed, newMemoryImage, planSnapshot, type TakenImage } from "./memory.ts";
import { sizesOf } from "./sizes.ts";

/** @param isForMove of a temporary one that is archived all the same, by the caller, and of a sandbox that is held from then on */
interface Taking extends Request<"snapshot"> {
  readonly isForMove?: true;
}

/** @throws {SandgateError} `conflict`, `insufficient_storage`, `unprocessable` without required memory; nothing is left of the attempt then. */
export async function takeSnapshot(context: WorkerContext, sandbox: LiveSandbox, call: Taking): Promise<SnapshotEntry> {
  const { snapshots } = context;
  const container = runningContainer(sandbox);
  await refuseWhenFull(context, sandbox, container);
  const plan = await planSnapshot(context.memory, sandbox, container, call);
  const layerId = newId("layer");
  const record = newRecord(context, sandbox, call, layerId);
  const memoryImage = plan.memory ? newMemoryImage() : undefined;
  try {
    await snapshots.begin({ ...record, ...(memoryImage === undefined ? {} : { memory_image: memoryImage }) });
    faultPoint("snapshot.begun");
    const base = baseOf(context, sandbox, container);
    base.catch(() => {}); // Awaited below, after the copy.
    const captured = await step("snapshot.capture", () => capture(context, sandbox, container, { record, layerId, memoryImage, plan, call }));
    faultPoint("snapshot.layer");
    const [, ...below] = record.manifest.layers;
    const image = captured.memory.memory && memoryImage !== undefined ? { number: memoryImage, ...context.memory.about(memoryImage) } : undefined;
    const manifest = { ...record.manifest, base: await base, layers: [{ id: layerId, size_bytes: captured.sizeBytes }, ...below], ...memoryLayerOf(image) };
    const found = {
      size_bytes: captured.sizeBytes + (image?.bytes ?? 0),
      ...sizesOf(context, { manifest }, layerUsers(snapshots, context.sandboxes)),
      ...captured.memory,
      pause_ms: Math.round(captured.pauseMs * 10) / 10,
      manifest,
    };
    const whole = await step("snapshot.publish", () => snapshots.complete(record.id, found));
    faultPoint("snapshot.published");
    // Done later, one after another, for all calls.
    if (whole.archived === "pending" && !call.isForMove) outsideTrace(() => context.replicator.add(whole));
    noteTaken(context, whole);
    return whole;
  } catch (error) {
    await undo(context, record);
    throw error;
  }
}

function noteTaken({ counters, log }: WorkerContext, { id, source_sandbox_id, consistency, pause_ms, size_bytes, memory, memory_reason }: SnapshotEntry): void {
  counters.notePause(pause_ms);
  const facts = { consistency, pause_ms, bytes: size_bytes, memory, ...(memory_reason === undefined ? {} : { memory_reason }) };
  log.info({ event: "snapshot_taken", snapshot: id, sandbox: source_sandbox_id, ...facts }, "a snapshot was taken");
}

/** Of an image that can leave this worker. */
function memoryLayerOf(image: (TakenImage & { readonly number: number }) | undefined): Pick<Manifest, "memory_image"> {
  if (image?.identity === undefined) return {};
  return { memory_image: { id: memoryLayerId(image.number), size_bytes: image.bytes, identity: image.identity } };
}

interface Capturing {
  readonly record: SnapshotEntry;
  readonly layerId: string;
  readonly memoryImage: number | undefined;
  readonly plan: MemoryDecision;
  readonly call: Taking;
}

/** What a record says about memory, beside the number of its image. */
type TakenMemory = Pick<SnapshotEntry, "memory" | "memory_reason">;

/** With memory as planned; where that fails and memory is not required, the files alone, in a further standstill. */
async function capture(
  context: WorkerContext,
  sandbox: LiveSandbox,
  container: CapturedContainer,
  { record, layerId, memoryImage, plan, call: { memory_wish: wish = "skip", isForMove } }: Capturing,
): Promise<CapturedLayer & { readonly memory: TakenMemory }> {
  const wanted = { layerId, consistency: record.consistency, isHeld: isForMove === true };
  if (!plan.memory) return { ...(await captureLayer(context, sandbox, container, wanted)), memory: without(plan.reason) };
  try {
    return { ...(await captureLayer(context, sandbox, container, { ...wanted, memoryImage })), memory: { memory: true } };
  } catch (error) {
    if (!(error instanceof MemoryFailed)) throw error;
    context.log.warn(
      { err: error, event: "memory_not_taken", snapshot: record.id, sandbox: record.source_sandbox_id },
      "the memory of a sandbox was not taken",
    );
    const instead = decideMemory(wish, error.message);
    await context.snapshots.begin(record);
    const files = await captureLayer(context, sandbox, container, wanted);
    return { ...files, pauseMs: error.pauseMs + files.pauseMs, memory: without(instead.memory ? undefined : instead.reason) };
  }
}

const without = (reason: string | undefined): TakenMemory => ({ memory: false, ...(reason === undefined ? {} : { memory_reason: reason }) });

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

function newRecord({ workerId, config }: WorkerContext, { record }: LiveSandbox, call: Taking, layerId: string): SnapshotEntry {
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
    archived: call.isForMove || (config.snapshotArchive && !call.temporary) ? "pending" : "local",
    attempt_id: call.attempt_id,
    ...(call.temporary ? { temporary: call.temporary } : {}),
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
