/** execute and execute_async: a stream from the worker, collected until its end or passed on as it arrives. */

import { commandCalls, type ExecutionEnd } from "../../shared/bus/contract/commands.ts";
import { messageChecker } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import { commandBytesMax, type ExecuteAsyncBody, type ExecuteBody } from "../../shared/schemas/executions.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import { newId } from "../../shared/util/ids.ts";
import { within } from "../../shared/waiting.ts";
import { type Answered, answered, type Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { type Exchange, jsonLine } from "../http/exchange.ts";
import { BodyWriter } from "../http/writer.ts";
import { OutputCollector } from "./output-collector.ts";
import { withStream } from "./streams.ts";

const timeoutDefaultS = 30;
const contentType = "application/json; charset=utf-8";
/** A result below this size is sent in one piece. */
const resultBytesAtOnce = 64 * 1024;
/** If the command writes nothing for this long, the stream begins with an empty chunk. */
const quietMs = 50;

const checkEnd = messageChecker(commandCalls.execute.stream.end, "the end of an execution");

export async function execute(context: GatewayContext, call: Call<unknown, ExecuteBody>): Promise<Answered> {
  const keepBytes = context.config.syncOutputBytesMax;
  const how = { source: "sync", timeoutMs: (call.body.timeout ?? timeoutDefaultS) * 1_000, keepBytes } as const;
  await run(context, call, how, async (executionId, stream, runs) => {
    const collector = new OutputCollector(context.outputMemory, 2 * keepBytes);
    const collected = stream.readEach((lines) => collector.add(lines));
    try {
      // What was not carried out has its reason in the reply. A command that ends at once has ended before the reply.
      await Promise.race([runs, collected.catch(() => runs)]);
      const end = checkEnd(await collected);
      await sendResult(context, call.exchange, resultOf(executionId, end, collector));
    } finally {
      // Not while some of it may still come.
      void collected.catch(() => {}).finally(() => collector.release());
    }
  });
  return answered;
}

/** A result as JSON text, generated piece by piece. */
interface Result {
  readonly bytes: number;
  readonly pieces: Iterable<string>;
}

/** Sends a large result at the client's speed. Its memory is counted until then, and the whole JSON is never in memory. */
async function sendResult({ config }: GatewayContext, exchange: Exchange, { bytes, pieces }: Result): Promise<void> {
  if (bytes < resultBytesAtOnce) return exchange.send(200, contentType, [...pieces].join(""));
  const writer = new BodyWriter(exchange, { contentType, totalBytes: bytes, stallMs: config.streamStallMs });
  for (const piece of pieces) await writer.write(Buffer.from(piece));
  writer.end();
}

export async function executeAsync(context: GatewayContext, call: Call<unknown, ExecuteAsyncBody>): Promise<Answered> {
  const maxMs = context.config.execTimeoutMaxMs;
  const timeoutMs = (call.body.timeout ?? maxMs / 1_000) * 1_000;
  if (timeoutMs > maxMs) throw new SandgateError("invalid_request", `timeout must be between 1 and ${maxMs / 1_000} (a whole number of seconds)`);
  await run(context, call, { source: "stream", timeoutMs }, async (_executionId, stream, runs) => {
    await runs;
    const headers = { "x-accel-buffering": "no" };
    return writeLines(stream, new BodyWriter(call.exchange, { contentType: "application/x-ndjson", headers, stallMs: context.config.streamStallMs }));
  });
  return answered;
}

interface How {
  readonly source: "sync" | "stream";
  readonly timeoutMs: number;
  /** Bytes kept of each output stream; all if absent. */
  readonly keepBytes?: number;
}

/** Asks the worker to run the command. @param follow called with its output stream, and with what resolves when it runs, or rejects */
async function run(
  context: GatewayContext,
  { exchange, by, id, body }: Call<unknown, ExecuteAsyncBody>,
  how: How,
  follow: (executionId: string, stream: Stream, runs: Promise<unknown>) => Promise<void>,
): Promise<void> {
  if (Buffer.byteLength(body.command) > commandBytesMax) throw new SandgateError("invalid_request", `command must be at most ${commandBytesMax} bytes`);
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  const executionId = newId("execution");
  const request = {
    ...by,
    sandbox_id: entry.id,
    execution_id: executionId,
    source: how.source,
    command: body.command,
    ...(body.working_dir ? { working_dir: body.working_dir } : {}),
    env: body.env ?? {},
    timeout_ms: how.timeoutMs,
    ...(how.keepBytes === undefined ? {} : { keep_bytes: how.keepBytes }),
  };
  await withStream(context, exchange, worker, async (stream) => {
    const runs = context.workers.call(worker, "execute", { ...request, to: stream.target });
    runs.catch(() => {}); // Its reply may come when nobody waits for it any more.
    await follow(executionId, stream, runs);
  });
}

async function writeLines(stream: Stream, writer: BodyWriter): Promise<void> {
  try {
    const lines = stream.read();
    const first = lines.next();
    // uWS sends the headers with the first byte of the body, and a client must not wait for them while a command is quiet.
    if ((await within(first, quietMs)) === undefined) await writer.write(ndjson({ stdout: "" }));
    let next = await first;
    for (; !next.done; next = await lines.next()) await writer.write(next.value);
    for (const line of lastLines(checkEnd(next.value))) await writer.write(line);
  } catch (thrown) {
    const error = SandgateError.from(thrown);
    await writer.write(ndjson({ error: error.message, code: error.code, reason: error.reason })).catch(() => {});
  }
  writer.end();
}

/** A stream ends with either an exit code or an error. A reason for a kill comes before the exit code. */
function lastLines(end: ExecutionEnd): Uint8Array[] {
  if (end.status === "error") return [ndjson({ error: end.error ?? "the execution failed", code: end.code ?? "internal_error", reason: end.reason })];
  const reason = end.error ? [ndjson({ stderr: `sandgate: ${end.error}\n` })] : [];
  return [...reason, ndjson({ exit_code: end.exit_code })];
}

const ndjson = (value: object): Uint8Array => Buffer.from(jsonLine(value));

/** Generates the answer with its members in order: those before the output, the output, those after it. */
function resultOf(id: string, end: ExecutionEnd, output: OutputCollector): Result {
  const before = `${JSON.stringify({ id, status: end.status, exit_code: end.exit_code }).slice(0, -1)},"stdout":"`;
  const between = '","stderr":"';
  const after = `",${JSON.stringify(restOf(end)).slice(1)}\n`;
  const pieces = function* (): Generator<string> {
    yield before;
    yield* output.json("stdout");
    yield between;
    yield* output.json("stderr");
    yield after;
  };
  const own = [before, between, after].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return { bytes: own + output.jsonBytes("stdout") + output.jsonBytes("stderr"), pieces: pieces() };
}

function restOf(end: ExecutionEnd): object {
  return {
    ...(end.stdout_truncated ? { stdout_truncated: true } : {}),
    ...(end.stderr_truncated ? { stderr_truncated: true } : {}),
    ...(end.error ? { error: end.error } : {}),
    execution_time_ms: end.ended_at_ms - end.started_at_ms,
    created_at: new Date(end.started_at_ms).toISOString(),
    completed_at: new Date(end.ended_at_ms).toISOString(),
  };
}
