/** Makes the layer of a snapshot from the files of a running sandbox: all at once where the storage can, otherwise file by file. */
import { mkdir } from "node:fs/promises";
import type { WorkerContext } from "../context.ts";
import { faultPoint } from "../faults.ts";
import type { Container } from "../runtime/container/container.ts";
import { type Captured, type Consistency, FilesystemDriver, SubvolumeDriver } from "../runtime/container/snapshot-driver.ts";
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
}

/** @throws {SandgateError} `conflict`, `insufficient_storage` */
export function captureLayer(context: WorkerContext, sandbox: LiveSandbox, container: CapturedContainer, wanted: Wanted): Promise<CapturedLayer> {
  const volume = context.storages.volumeOf(container.writableLayer);
  return volume ? shareFiles(context, volume, sandbox, container, wanted) : copyFiles(context, sandbox, container, wanted);
}

async function copyFiles(context: WorkerContext, sandbox: LiveSandbox, container: CapturedContainer, wanted: Wanted): Promise<CapturedLayer> {
  const { layers, oci } = context;
  const captured = Promise.withResolvers<CapturedLayer>();
  await layers.make(wanted.layerId, async (dir) => {
    await mkdir(dir);
    const unfinished = temporaryNames(sandbox);
    const copied = await new FilesystemDriver(oci).capture(container, dir, wanted.consistency);
    await removeByPrefix(dir, [...new Set([...unfinished, ...temporaryNames(sandbox)])]);
    faultPoint("snapshot.copied");
    const sizeBytes = (await layerUse(dir))?.bytes ?? 0;
    await syncTree(dir);
    captured.resolve({ ...copied, sizeBytes });
  });
  return captured.promise;
}

async function shareFiles(
  { layers, oci }: WorkerContext,
  volume: Subvolumes,
  sandbox: LiveSandbox,
  container: CapturedContainer,
  { layerId, consistency }: Wanted,
): Promise<CapturedLayer> {
  const captured = Promise.withResolvers<CapturedLayer>();
  await layers.adopt(layerId, async (layer) => {
    const unfinished = temporaryNames(sandbox);
    const copied = await new SubvolumeDriver(oci, volume).capture(container, layer, consistency);
    await volume.limit(layer, Number.MAX_SAFE_INTEGER);
    await removeByPrefix(layer, [...new Set([...unfinished, ...temporaryNames(sandbox)])]);
    faultPoint("snapshot.copied");
    captured.resolve({ ...copied, sizeBytes: (await volume.use(layer))?.bytes ?? 0 });
  });
  return captured.promise;
}

/** File name prefixes of uploads in progress: an incomplete file is left out of the snapshot. */
const temporaryNames = ({ activities }: LiveSandbox): string[] => [...activities].flatMap(({ temporaryName }) => temporaryName ?? []);
