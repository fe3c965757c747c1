/** The calls of operators: `drain`, `forgetAccount`, `images` and `removeImage`. */
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { ImageEntry } from "../../shared/bus/contract/operators.ts";
import type { WorkerContext } from "../context.ts";

/** Lets the worker take new sandboxes, or no more. What it has goes on. Replies when that is durable. */
export async function setCordoned({ store, peers, log }: WorkerContext, { on }: Request<"drain">): Promise<object> {
  await store.setCordoned(on);
  peers.beat();
  log.warn({ event: "worker_drain", on }, on ? "the worker takes no new sandboxes" : "the worker takes sandboxes again");
  return {};
}

/** Replies when nothing of the account's log is left here. */
export async function forgetAccount({ store }: WorkerContext, { account_id }: Request<"forgetAccount">): Promise<object> {
  await store.log.forget(account_id);
  return {};
}

export async function listImages({ images }: WorkerContext, _call: Request<"images">): Promise<{ images: ImageEntry[] }> {
  return { images: await images.list() };
}

/** Replies when it is gone. */
export async function removeImage({ images, log }: WorkerContext, { id }: Request<"removeImage">): Promise<object> {
  await images.remove(id);
  log.warn({ event: "image_removed", image: id }, "an operator has removed an image");
  return {};
}
