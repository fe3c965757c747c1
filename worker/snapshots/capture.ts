/**
 * Makes the layer of a snapshot from the files of a running sandbox: all at once where the storage can, otherwise file by file. With
 * an image of memory, both are taken while the sandbox stands still.
 */
import { mkdir } from "node:fs/promises";
import { faultPoint } from "../../shared/faults.ts";
import type { WorkerContext } from "../context.ts";
import type { Container } from "../runtime/container/container.ts";
import { type Captured, type Consistency, FilesystemDriver, type Standstill, SubvolumeDriver } from "../runtime/container/snapshot-driver.ts";
import { layerUse } from "../runtime/filesystem/disk.ts";
import { removeByPrefix, syncTree } from "../runtime/filesystem/tree.ts";
import type { Subvolumes } from "../runtime/storage/subvolumes.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";

export type CapturedContainer = Container & { writableLayer: string };

export interface CapturedLayer extends Captured {
  readonly sizeBytes: number;
}

interface Wanted {
  readonly layerId: string;
  readonly consistency: Consistency;
  /** The number of the image of memory to take; undefined for files alone. */
  readonly memoryImage?: number | undefined;
  /** Whether the sandbox is held afterwards, see `Standstills.hold`. */
  readonly isHeld?: boolean;
}

/** @throws {SandgateError} `conflict`, `insufficient_storage`. @throws {MemoryFailed} when files alone may still be captured */
export function captureLayer(context: WorkerContext, sandbox: LiveSandbox, container: CapturedContainer, wanted: Wanted): Promise<CapturedLayer> {
  const volume = context.storages.volumeOf(container.writableLayer);
  return volume ? shareFiles(context, volume, sandbox, container, wanted) : copyFiles(context, sandbox, container, wanted);
}

async function copyFiles(context: WorkerContext, sandbox: LiveSandbox, container: CapturedContainer, wanted: Wanted): Promise<CapturedLayer> {
  const { layers } = context;
  const captured = Promise.withResolvers<CapturedLayer>();
  await layers.make(wanted.layerId, async (dir) => {
    await mkdir(dir);
    const unfinished = temporaryNames(sandbox);
    const copied = await new FilesystemDriver(standstillOf(context, sandbox, wanted)).capture(container, dir, wanted.consistency);
    await removeByPrefix(dir, [...new Set([...unfinished, ...temporaryNames(sandbox)])]);
    faultPoint("snapshot.copied");
    const sizeBytes = (await layerUse(dir))?.bytes ?? 0;
    await syncTree(dir);
    captured.resolve({ ...copied, sizeBytes });
  });
  return captured.promise;
}

async function shareFiles(
  context: WorkerContext,
  volume: Subvolumes,
  sandbox: LiveSandbox,
  container: CapturedContainer,
  wanted: Wanted,
): Promise<CapturedLayer> {
  const captured = Promise.withResolvers<CapturedLayer>();
  await context.layers.adopt(wanted.layerId, async (layer) => {
    const unfinished = temporaryNames(sandbox);
    const copied = await new SubvolumeDriver(standstillOf(context, sandbox, wanted), volume).capture(container, layer, wanted.consistency);
    const left = [...new Set([...unfinished, ...temporaryNames(sandbox)])];
    if (left.length > 0) {
      // In a full one, even a removal would fail. All others keep their limit, which most sandboxes that are made of them have, too.
      await volume.limit(layer, Number.MAX_SAFE_INTEGER);
      await volume.change(layer, (dir) => removeByPrefix(dir, left));
    }
    faultPoint("snapshot.copied");
    captured.resolve({ ...copied, sizeBytes: (await volume.use(layer))?.bytes ?? 0 });
  });
  return captured.promise;
}

function standstillOf({ oci: { standstills }, memory, sessions }: WorkerContext, sandbox: LiveSandbox, { memoryImage, isHeld }: Wanted): Standstill {
  if (memoryImage !== undefined) return memory.standstill(memoryImage, sessions.forImage(sandbox), isHeld);
  if (!isHeld) return standstills;
  return { during: (container, action) => standstills.hold(container).then(() => standstills.during(container, action)) };
}

/** File name prefixes of uploads in progress: an incomplete file is left out of the snapshot. */
const temporaryNames = ({ activities }: LiveSandbox): string[] => [...activities].flatMap(({ temporaryName }) => temporaryName ?? []);
