/** What there is in JetStream and how large it may become. Gateways make it; workers only use it, and may do no more. */

import { DiscardPolicy, JetStreamApiError, type JetStreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { SandgateError } from "../errors.ts";
import type { Logger } from "../util/log.ts";
import { pause } from "../waiting.ts";
import { openStorage } from "./kv.ts";
import type { Bus } from "./nats.ts";
import { bucketStream, entryBuckets, layerSubjects } from "./subjects.ts";

const pollMs = 200;
const nudgeMs = 10_000;
/** The server's codes: there is no such stream; it has less room than was asked for. */
const noStream = 10_059;
const noRoom = 10_047;

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
    const found = await jsm.streams.info(layerSubjects.stream).catch(unless(noStream));
    if (!found) await refusedForRoom(jsm.streams.add(config), "SANDGATE_SNAPSHOT_ARCHIVE_BYTES_MAX");
    else await setBytesMax(jsm, found.config, bytesMax);
  });
}

/** Changes the size of a stream where it is another. What is in it stays, also when that is more. */
export async function setBytesMax(jsm: JetStreamManager, config: { readonly name: string; readonly max_bytes: number }, bytesMax: number): Promise<void> {
  if (config.max_bytes !== bytesMax)
    await refusedForRoom(jsm.streams.update(config.name, { ...config, max_bytes: bytesMax }), "SANDGATE_SNAPSHOT_ARCHIVE_BYTES_MAX");
}

/** Resolves when a gateway has made what workers need. */
export async function untilStorageIsThere(bus: Bus, log: Logger): Promise<void> {
  const { jsm } = await openStorage(bus);
  const streams = [...entryBuckets.map(bucketStream), layerSubjects.stream];
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

async function refusedForRoom<T>(asked: Promise<T>, setting: string): Promise<T> {
  return asked.catch((error: unknown) => {
    if (!(error instanceof JetStreamApiError && error.code === noRoom)) throw error;
    throw new SandgateError("insufficient_storage", `the NATS server has less room for JetStream than the installation may use; lower ${setting}`, {
      cause: error,
    });
  });
}

const unless =
  (code: number) =>
  (error: unknown): undefined => {
    if (!(error instanceof JetStreamApiError && error.code === code)) throw error;
  };
