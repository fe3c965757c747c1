/** The layer store, as seen by a worker that has stored layers in it. */
import { LayerRecords } from "../../shared/bus/layer-records.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { makeLayerStore } from "../../shared/bus/storage.ts";
import { layerSubjects } from "../../shared/bus/subjects.ts";
import { LayerArchive } from "../../worker/snapshots/archive.ts";
import { quiet } from "./nats.ts";

const bytesMax = 1024 ** 3;

export interface Archive {
  readonly archive: LayerArchive;
  readonly records: LayerRecords;
  /** The layers that can be fetched. */
  listed(): Promise<string[]>;
}

export async function openArchive(bus: Bus, workerId: string): Promise<Archive> {
  await makeLayerStore(bus, bytesMax);
  const [archive, records] = [await LayerArchive.open(bus, workerId, quiet), await LayerRecords.open(bus)];
  const listed = async (): Promise<string[]> => {
    const ids = Object.keys(await records.subjects(layerSubjects.record(workerId, "*"))).map((subject) => subject.slice(subject.lastIndexOf(".") + 1));
    const seen = await Promise.all(ids.map((id) => archive.has(id)));
    return ids.filter((_, index) => seen[index]);
  };
  return { archive, records, listed };
}
