/** The call `line`: a gateway of the same machine asks for one connection for all streams between the two. */
import { join } from "node:path";
import type { Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import { comeTo } from "../../shared/stream/line/introduction.ts";
import type { WorkerContext } from "../context.ts";

/** Replies when it is there. */
export async function line({ config, hub }: WorkerContext, { peer, socket, token }: Request<"line">): Promise<object> {
  if (!config.linesDir) throw new SandgateError("unavailable", "this worker has no folder for lines");
  hub.lines.add(peer, await comeTo(join(config.linesDir, socket), token));
  return {};
}
