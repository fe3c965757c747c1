/** JetStream as this process may use it, and the size of its streams. */
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { SandgateError } from "../errors.ts";
import { isApiError } from "./failures.ts";
import type { Bus } from "./nats.ts";

/** See `BusAccess`. */
export async function openStorage(bus: Bus, timeoutMs = 5_000): Promise<{ js: JetStreamClient; jsm: JetStreamManager }> {
  const options = { timeout: timeoutMs, checkAPI: false, ...(bus.storePrefix ? { apiPrefix: bus.storePrefix } : {}) };
  return { js: jetstream(bus.connection, options), jsm: await jetstreamManager(bus.connection, options) };
}

/** Changes the size of a stream where it is another. What is in it stays, also when that is more. */
export async function setBytesMax(jsm: JetStreamManager, config: { readonly name: string; readonly max_bytes: number }, bytesMax: number): Promise<void> {
  if (config.max_bytes !== bytesMax) await refusedForRoom(jsm.streams.update(config.name, { ...config, max_bytes: bytesMax }));
}

/** @throws {SandgateError} `insufficient_storage`, which names the setting. */
export async function refusedForRoom<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((cause: unknown) => {
    if (!isApiError(cause, "noRoom")) throw cause;
    const advice = "the NATS server has less room for JetStream than the installation may use; lower SANDGATE_SNAPSHOT_ARCHIVE_BYTES_MAX";
    throw new SandgateError("insufficient_storage", advice, { cause });
  });
}

/** Makes a stream. The server (2.9 at least) refuses one that another gateway makes at the same moment; asked once more, it finds that one there. */
export async function makingStream<T>(make: () => Promise<T>): Promise<T> {
  const asked = (): Promise<T> => refusedForRoom(make());
  return asked().catch((error: unknown) => (isApiError(error, "subjectsTaken") ? asked() : Promise.reject(error)));
}
