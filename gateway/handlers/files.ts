/** upload, download and stat: bytes pass through, at the speed of the slower side. */
import type { Static } from "typebox";
import { DownloadAccepted, StatReply, UploadAccepted, UploadDone } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import { type DownloadQuery, type StatQuery, type UploadQuery, UploadTarget } from "../../shared/schemas/files.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { StreamReceiver } from "../../shared/stream/receiver.ts";
import { StreamSender } from "../../shared/stream/sender.ts";
import type { Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { openMultipart } from "../http/multipart.ts";
import { BodyWriter } from "../http/writer.ts";

const startTimeoutMs = 60_000;
/** What a multipart form may hold beside the file. */
const formBytesMax = 64 * 1024;
const chunkBytesMax = 64 * 1024;

const checkAccepted = checker(UploadAccepted);
const checkDone = checker(UploadDone);
const checkTargetFields = checker(UploadTarget);
const checkStat = checker(StatReply);
const checkSize = checker(DownloadAccepted);

const clientGone = (): SandgateError => new SandgateError("unavailable", "the client went away");

interface FileSource {
  readonly bytes: AsyncIterable<Buffer>;
  /** Where the file goes; known for certain only when all bytes were read. */
  readonly target: () => Promise<UploadTarget>;
}

export async function upload(context: GatewayContext, call: Call<Static<typeof UploadQuery>, unknown>): Promise<void> {
  const { exchange, by, id } = call;
  const bytesMax = context.config.uploadBytesMax;
  const tooLarge = new SandgateError("payload_too_large", `a file must be at most ${bytesMax} bytes`);
  if ((exchange.body.length ?? 0) > bytesMax + formBytesMax) throw tooLarge;
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  const source = await openSource(call);
  const outcome = new StreamReceiver(context.hub, context.config.streamWindowBytes).connectTo(worker.peer);
  exchange.onAbort((reason) => outcome.cancel(reason));
  try {
    const size_hint = Math.min(exchange.body.length ?? 0, bytesMax);
    const target = await context.workers.call(worker, "upload", { ...by, sandbox_id: entry.id, to: outcome.target, size_hint }, checkAccepted, startTimeoutMs);
    if (target.peer !== worker.peer) throw new SandgateError("internal_error", "the worker names another's stream");
    const sender = new StreamSender(context.hub, target);
    const sent = sendFile(source, sender, { bytesMax, tooLarge, stallMs: context.config.streamStallMs });
    const [{ path }, { size, files }] = await Promise.all([sent, receiveOutcome(outcome, sent)]);
    exchange.sendJson(200, { message: files === undefined ? "File uploaded" : "Archive unpacked", path, size, ...(files === undefined ? {} : { files }) });
  } finally {
    outcome.cancel(clientGone());
  }
}

/** @throws {SandgateError} `invalid_request`. */
function checkTarget(fields: unknown): UploadTarget {
  const target = checkTargetFields(fields);
  if (target.archive && target.mode) throw new SandgateError("invalid_request", "mode is for a file; the files of an archive have their own");
  return target;
}

/** The body as a file: multipart, or the bytes themselves with `?path=`. @throws {SandgateError} `invalid_request`. */
async function openSource({ exchange, query }: Call<Static<typeof UploadQuery>, unknown>): Promise<FileSource> {
  const contentType = exchange.header("content-type");
  const type = contentType.split(";")[0]?.trim().toLowerCase();
  if (type === "multipart/form-data") {
    const form = await openMultipart(exchange.body, contentType);
    if (form.fields.path !== undefined) checkTarget(together(query, form.fields));
    return { bytes: form.file, target: async () => checkTarget(together(query, await form.finished)) };
  }
  if (type && type !== "application/octet-stream") {
    throw new SandgateError("invalid_request", "the Content-Type must be multipart/form-data or application/octet-stream");
  }
  const target = checkTarget(query);
  return { bytes: exchange.body.chunks(), target: async () => target };
}

/** What the address and the form say of the file. @throws {SandgateError} `invalid_request` where both say the same. */
function together(query: Static<typeof UploadQuery>, fields: Readonly<Record<string, string>>): Record<string, unknown> {
  const twice = Object.keys(fields).find((name) => Object.hasOwn(query, name));
  if (twice) throw new SandgateError("invalid_request", `${twice} must come only once: in the form, or as a query parameter`);
  return { ...query, ...fields };
}

interface SendLimits {
  readonly bytesMax: number;
  readonly tooLarge: SandgateError;
  readonly stallMs: number;
}

async function sendFile(source: FileSource, sender: StreamSender, { bytesMax, tooLarge, stallMs }: SendLimits): Promise<{ path: string }> {
  let size = 0;
  try {
    for await (const chunk of source.bytes) {
      size += chunk.length;
      if (size > bytesMax) throw tooLarge;
      for (let at = 0; at < chunk.length; at += chunkBytesMax) await writeInTime(sender, chunk.subarray(at, at + chunkBytesMax), stallMs);
    }
    const target = await source.target();
    sender.end(target);
    return target;
  } catch (thrown) {
    const error = SandgateError.from(thrown);
    sender.fail(error);
    throw error;
  }
}

/** While nothing is read from it, a connection does not tell that its client is gone: only time ends such an upload. */
async function writeInTime(sender: StreamSender, chunk: Buffer, stallMs: number): Promise<void> {
  const timer = setTimeout(() => sender.abort(new SandgateError("unavailable", "the sandbox takes no more of the file")), stallMs);
  try {
    await sender.write(chunk);
  } finally {
    clearTimeout(timer);
  }
}

/** The worker's word on how it went; what broke on our side comes first. */
async function receiveOutcome(outcome: StreamReceiver, sent: Promise<unknown>): Promise<UploadDone> {
  try {
    const end = await outcome.read().next();
    return checkDone(end.value);
  } catch (error) {
    const own = await Promise.race([
      sent.then(
        () => undefined,
        (reason: unknown) => reason,
      ),
      Promise.resolve(undefined),
    ]);
    throw own ?? error;
  }
}

export async function stat(context: GatewayContext, { exchange, by, id, query }: Call<Static<typeof StatQuery>, unknown>): Promise<void> {
  const { worker_id } = await context.sandboxes.find(id, by.account_id);
  const call = { ...by, sandbox_id: id, path: query.path };
  const { modified_at_ms, ...info } = await context.workers.call(context.workers.worker(worker_id), "stat", call, checkStat, startTimeoutMs);
  exchange.sendJson(200, { path: query.path, ...info, modified_at: new Date(modified_at_ms).toISOString() });
}

export async function download(context: GatewayContext, { exchange, by, id, query }: Call<Static<typeof DownloadQuery>, unknown>): Promise<void> {
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  const receiver = new StreamReceiver(context.hub, context.config.streamWindowBytes).connectTo(worker.peer);
  exchange.onAbort((reason) => receiver.cancel(reason));
  try {
    const request = { ...by, sandbox_id: entry.id, path: query.path, archive: query.archive === "tar", to: receiver.target };
    const { size } = await context.workers.call(worker, "download", request, checkSize, startTimeoutMs);
    await sendDownload(context, exchange, receiver, query, size);
  } finally {
    receiver.cancel(clientGone());
  }
}

async function sendDownload(
  context: GatewayContext,
  exchange: Call<unknown, unknown>["exchange"],
  receiver: StreamReceiver,
  query: Static<typeof DownloadQuery>,
  size: number | undefined,
): Promise<void> {
  const headers = { "content-disposition": disposition(query), "x-content-type-options": "nosniff" };
  if (exchange.method === "HEAD") return exchange.sendHead(200, "application/octet-stream", size, headers);
  const writer = new BodyWriter(exchange, { contentType: "application/octet-stream", headers, totalBytes: size, stallMs: context.config.streamStallMs });
  try {
    for await (const chunk of receiver.read()) await writer.write(chunk);
    writer.end();
  } catch (error) {
    context.log.warn({ err: error, request_id: exchange.requestId }, "a download broke off");
    writer.cut();
  }
}

/** RFC 6266: the name in ASCII for old clients, in UTF-8 for the others. */
function disposition({ path, archive }: Static<typeof DownloadQuery>): string {
  const name = (path.replace(/\/+$/, "").split("/").at(-1) || "root") + (archive ? ".tar" : "");
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const utf8 = encodeURIComponent(name.toWellFormed()).replaceAll(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`;
}
