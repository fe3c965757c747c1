/** Streams with workers on behalf of a call: they end with it, whatever becomes of it. */

import { SandgateError } from "../../shared/errors.ts";
import { Stream } from "../../shared/stream/stream.ts";
import type { GatewayContext } from "../context.ts";
import type { WorkerRef } from "../fleet/placement.ts";
import type { Exchange } from "../http/exchange.ts";

/**
 * Opens a stream for as long as it is used.
 *
 * @throws what `use` throws; why the client does not want the answer any more
 */
export async function withStream<T>({ hub, config }: GatewayContext, exchange: Exchange, worker: WorkerRef, use: (stream: Stream) => Promise<T>): Promise<T> {
  // A cancellation that the worker gets before the call itself would be in vain.
  if (exchange.unwanted) throw exchange.unwanted;
  const stream = Stream.open(hub, worker.peer, { windowBytes: config.streamWindowBytes, stallMs: config.streamStallMs });
  exchange.onAbort((reason) => stream.cancel(reason));
  try {
    return await use(stream);
  } finally {
    stream.cancel(new SandgateError("unavailable", "the client went away"));
  }
}
