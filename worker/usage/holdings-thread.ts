/** The thread that reads what sandboxes hold, so that the event loop does not block on it. */
import { parentPort } from "node:worker_threads";
import { type Holdings, type HoldingsRequest, holdingsOf } from "./holdings.ts";

export interface ThreadRequest extends HoldingsRequest {
  readonly id: number;
}

export interface ThreadReply {
  readonly id: number;
  readonly holdings: Holdings | undefined;
  readonly error?: string;
}

parentPort?.on("message", ({ id, ...request }: ThreadRequest) => {
  let reply: ThreadReply;
  try {
    reply = { id, holdings: holdingsOf(request) };
  } catch (error) {
    reply = { id, holdings: undefined, error: String(error) };
  }
  parentPort?.postMessage(reply);
});
