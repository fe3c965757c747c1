/** Answers the requests of one connection, one after the other. What the other end can do with it is in THREATS.md. */
import type { Readable, Writable } from "node:stream";
import { parseRequest, type Reply, type Request, requestBytesMax, requestsMax } from "../../shared/privileged.ts";
import { messageOf } from "../base/failure.ts";
import { readLines } from "../supervisor/lines.ts";
import { Refusal, type Served, verbs } from "./verbs.ts";

/** @param input and @param output may be the two directions of one socket. Both are closed when the other end breaks the rules. */
export function serve(input: Readable, output: Writable, served: Served): void {
  let waiting = 0;
  let last = Promise.resolve();
  const end = (): void => {
    input.destroy();
    output.destroy();
  };
  output.on("error", end);
  input.once("close", end);
  const answer = async (request: Request): Promise<void> => {
    if (output.destroyed) return;
    const reply = await carryOut(request, served);
    // A request waits until the other end has taken its reply, so replies that nobody reads are bounded as well.
    output.write(`${JSON.stringify(reply)}\n`, () => waiting--);
  };
  readLines(
    input,
    (line) => {
      if (output.destroyed) return;
      const request = parseRequest(line);
      if (!request || waiting >= requestsMax) return end();
      waiting++;
      last = last.then(() => answer(request));
    },
    requestBytesMax,
  );
}

async function carryOut(request: Request, served: Served): Promise<Reply> {
  const { id } = request;
  try {
    if (request.verb === "quota.set") await verbs["quota.set"](served, request);
    else if (request.verb === "ids.map") await verbs["ids.map"](served, request);
    else await verbs[request.verb](served, request);
    return { id, ok: true };
  } catch (error) {
    return { id, error: error instanceof Refusal ? error.fault : "failed", message: messageOf(error) };
  }
}
