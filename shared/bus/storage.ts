/** What there is in JetStream and how large it may become. Gateways make it; workers only use it, and may do no more. */

import { DiscardPolicy, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import type { Logger } from "../util/log.ts";
import { pause } from "../waiting.ts";
import { unless } from "./failures.ts";
import { makingStream, openStorage, setBytesMax } from "./jetstream.ts";
import type { Bus } from "./nats.ts";
import { bucketStream, layerSubjects, workerBuckets } from "./subjects.ts";

const pollMs = 200;
const nudgeMs = 10_000;

/** Makes the store of layers, or gives the one that is there the size that is set. */
export async function makeLayerStore(bus: Bus, bytesMax: number): Promise<void> {
  const { jsm } = await openStorage(bus);
  const config = {
    name: layerSubjects.stream,
    subjects: [...layerSubjects.all],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    // A full store refuses what is new, and loses nothing.
    discard: DiscardPolicy.New,
    max_bytes: bytesMax,
    allow_rollup_hdrs: true,
    allow_direct: true,
  };
  await bus.whileConnected(async () => {
    const found = await jsm.streams.info(layerSubjects.stream).catch(unless("noStream"));
    if (!found) await makingStream(() => jsm.streams.add(config));
    else await setBytesMax(jsm, found.config, bytesMax);
  });
}

/** Resolves when a gateway has made what workers need. */
export async function untilStorageIsThere(bus: Bus, log: Logger): Promise<void> {
  const { jsm } = await openStorage(bus);
  const streams = [...workerBuckets.map(bucketStream), layerSubjects.stream];
  const areThere = (): Promise<boolean> =>
    Promise.all(streams.map((stream) => jsm.streams.info(stream))).then(
      () => true,
      () => false,
    );
  for (let untoldMs = nudgeMs; !(await areThere()); untoldMs -= pollMs) {
    if (untoldMs === 0) log.warn({ event: "storage_awaited" }, "the storage is not there yet; a gateway makes it at its start");
    await pause(pollMs);
  }
}
