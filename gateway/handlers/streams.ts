/** Streams to workers on behalf of a call. They always end with the call. */

import { errors } from "../../shared/known-errors.ts";
import { Stream } from "../../shared/stream/stream.ts";
import type { GatewayContext } from "../context.ts";
import type { WorkerRef } from "../fleet/placement.ts";
import type { Exchange } from "../http/exchange.ts";

/**
 * Opens a stream for the duration of `use`.
 *
 * @throws what `use` throws, or the reason why the response is no longer wanted
 */
export async function withStream<T>({ hub, config }: GatewayContext, exchange: Exchange, worker: WorkerRef, use: (stream: Stream) => Promise<T>): Promise<T> {
  // The worker would ignore a cancellation that arrives before the call itself.
  if (exchange.unwanted) throw exchange.unwanted;
  const stream = Stream.open(hub, worker.peer, { windowBytes: config.streamWindowBytes, stallMs: config.streamStallMs });
  exchange.onAbort((reason) => stream.cancel(reason));
  try {
    return await use(stream);
  } finally {
    stream.cancel(errors.clientGone());
  }
}
