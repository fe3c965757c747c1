/** The call `drain`. */
import type { DrainCall } from "../../shared/schemas/messages.ts";
import type { WorkerContext } from "../context.ts";

/** Lets the worker take new sandboxes, or no more. What it has goes on. Replies when that is durable. */
export async function setCordoned({ store, peers, log }: WorkerContext, { on, request_id }: DrainCall): Promise<object> {
  await store.setCordoned(on);
  peers.beat();
  log.warn({ event: "worker_drain", on, request_id }, on ? "the worker takes no new sandboxes" : "the worker takes sandboxes again");
  return {};
}
