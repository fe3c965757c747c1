/** The call `line`: a gateway asks for one connection for all streams between the two. */
import { join } from "node:path";
import type { Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import { comeTo } from "../../shared/stream/line/introduction.ts";
import type { WorkerContext } from "../context.ts";

/** Replies when it is there. */
export async function line({ config, hub }: WorkerContext, { peer, socket, address, token }: Request<"line">): Promise<object> {
  const place = address ?? (config.linesDir && socket ? join(config.linesDir, socket) : undefined);
  if (!place) throw new SandgateError("unavailable", "this worker has no folder for lines");
  hub.lines.add(peer, await comeTo(place, token));
  return {};
}
