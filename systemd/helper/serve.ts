/** Answers the requests of one connection, one after the other. What the other end can do with it is in THREATS.md. */
import type { Readable, Writable } from "node:stream";
import { faultPoint } from "../../shared/faults.ts";
import { parseRequest, type Reply, type Request, requestBytesMax, requestsMax } from "../../shared/privileged.ts";
import { messageOf } from "../base/failure.ts";
import { readLines } from "../supervisor/lines.ts";
import { MemoryImages } from "./memory/images.ts";
import { Refusal } from "./refusal.ts";
import { type Connected, type Served, verbs } from "./verbs.ts";

/** @param input and @param output may be the two directions of one socket. Both are closed when the other end breaks the rules. */
export function serve(input: Readable, output: Writable, served: Served): void {
  const connected = { ...served, memory: new MemoryImages(served.images, served.worker) };
  let waiting = 0;
  let last = Promise.resolve();
  const end = (): void => {
    input.destroy();
    output.destroy();
    // After what is being carried out, which may be a dump.
    void last.then(() => connected.memory.close());
  };
  output.on("error", end);
  input.once("close", end);
  const answer = async (request: Request): Promise<void> => {
    if (output.destroyed) return;
    const reply = await carryOut(request, connected);
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

async function carryOut(request: Request, connected: Connected): Promise<Reply> {
  const { id, verb } = request;
  try {
    faultPoint(`${verb}.begun`);
    const value = await (verbs[verb] as (connected: Connected, fields: Request) => Promise<number | undefined>)(connected, request);
    faultPoint(`${verb}.done`);
    return { id, ok: true, ...(value === undefined ? {} : { value }) };
  } catch (error) {
    return { id, error: error instanceof Refusal ? error.fault : "failed", message: messageOf(error) };
  }
}
