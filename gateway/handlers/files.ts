/** upload, download and stat. Bytes are passed through at the speed of the slower side. */

import { fileCalls } from "../../shared/bus/contract/files.ts";
import { messageChecker } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import { type DownloadQuery, type FileInfo, type StatQuery, type UploadQuery, type UploadResult, UploadTarget } from "../../shared/schemas/files.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import { type Answered, answered, type Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { openMultipart } from "../http/multipart.ts";
import { BodyWriter } from "../http/writer.ts";
import { withStream } from "./streams.ts";

/** The most bytes that a multipart form may have besides the file. */
const formBytesMax = 64 * 1024;
const chunkBytesMax = 64 * 1024;

const checkDone = messageChecker(fileCalls.upload.stream.end, "the end of an upload");
const checkTargetFields = checker(UploadTarget);

interface FileSource {
  readonly bytes: AsyncIterable<Buffer>;
  /** The destination of the file; final only when all bytes have been read. */
  readonly target: () => Promise<UploadTarget>;
}

export async function upload(context: GatewayContext, call: Call<UploadQuery, unknown>): Promise<UploadResult> {
  const { exchange, by, id } = call;
  const bytesMax = context.config.uploadBytesMax;
  const tooLarge = new SandgateError("payload_too_large", `a file must be at most ${bytesMax} bytes`);
  if ((exchange.body.length ?? 0) > bytesMax + formBytesMax) throw tooLarge;
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  const source = await openSource(call);
  return withStream(context, exchange, worker, async (stream) => {
    const size_hint = Math.min(exchange.body.length ?? 0, bytesMax);
    await context.workers.call(worker, "upload", { ...by, sandbox_id: entry.id, to: stream.target, size_hint });
    // An error on this side is thrown before the worker reports its consequence.
    const [{ path }, end] = await Promise.all([sendFile(source, stream, bytesMax, tooLarge), stream.readEach()]);
    const { size, files } = checkDone(end);
    return { message: files === undefined ? "File uploaded" : "Archive unpacked", path, size, ...(files === undefined ? {} : { files }) };
  });
}

/** @throws {SandgateError} `invalid_request`. */
function checkTarget(fields: unknown): UploadTarget {
  const target = checkTargetFields(fields);
  if (target.archive && target.mode) throw new SandgateError("invalid_request", "mode is for a file; the files of an archive have their own");
  return target;
}

/** Opens the body as a file: multipart, or raw bytes with `?path=`. @throws {SandgateError} `invalid_request`. */
async function openSource({ exchange, query }: Call<UploadQuery, unknown>): Promise<FileSource> {
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

/** Merges query parameters and form fields. @throws {SandgateError} `invalid_request` for a name that is in both. */
function together(query: UploadQuery, fields: Readonly<Record<string, string>>): Record<string, unknown> {
  const twice = Object.keys(fields).find((name) => Object.hasOwn(query, name));
  if (twice) throw new SandgateError("invalid_request", `${twice} must come only once: in the form, or as a query parameter`);
  return { ...query, ...fields };
}

/** Sends the file. A paused connection does not reveal that its client is gone; then only the stream's stall timeout ends the upload. */
async function sendFile(source: FileSource, stream: Stream, bytesMax: number, tooLarge: SandgateError): Promise<UploadTarget> {
  let size = 0;
  try {
    for await (const chunk of source.bytes) {
      size += chunk.length;
      if (size > bytesMax) throw tooLarge;
      for (let at = 0; at < chunk.length; at += chunkBytesMax) await stream.write(chunk.subarray(at, at + chunkBytesMax));
    }
    const target = await source.target();
    stream.end(target);
    return target;
  } catch (thrown) {
    const error = SandgateError.from(thrown);
    stream.fail(error);
    throw error;
  }
}

export async function stat(context: GatewayContext, { by, id, query }: Call<StatQuery, unknown>): Promise<FileInfo> {
  const { worker_id } = await context.sandboxes.find(id, by.account_id);
  const call = { ...by, sandbox_id: id, path: query.path };
  const { modified_at_ms, ...info } = await context.workers.call(context.workers.worker(worker_id), "stat", call);
  return { path: query.path, ...info, modified_at: new Date(modified_at_ms).toISOString() };
}

export async function download(context: GatewayContext, { exchange, by, id, query }: Call<DownloadQuery, unknown>): Promise<Answered> {
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  await withStream(context, exchange, worker, async (stream) => {
    const request = { ...by, sandbox_id: entry.id, path: query.path, archive: query.archive === "tar", to: stream.target };
    const { size } = await context.workers.call(worker, "download", request);
    await sendDownload(context, exchange, stream, query, size);
  });
  return answered;
}

async function sendDownload(
  context: GatewayContext,
  exchange: Call<unknown, unknown>["exchange"],
  stream: Stream,
  query: DownloadQuery,
  size: number | undefined,
): Promise<void> {
  const headers = { "content-disposition": disposition(query), "x-content-type-options": "nosniff" };
  if (exchange.method === "HEAD") return exchange.sendHead(200, "application/octet-stream", size, headers);
  const writer = new BodyWriter(exchange, { contentType: "application/octet-stream", headers, totalBytes: size, stallMs: context.config.streamStallMs });
  try {
    await stream.readEach((chunk) => writer.write(chunk));
    writer.end();
  } catch (error) {
    context.log.warn({ err: error }, "a download broke off");
    writer.cut();
  }
}

/** `Content-Disposition` by RFC 6266: the name in ASCII for old clients, in UTF-8 for the others. */
function disposition({ path, archive }: DownloadQuery): string {
  const name = (path.replace(/\/+$/, "").split("/").at(-1) || "root") + (archive ? ".tar" : "");
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const utf8 = encodeURIComponent(name.toWellFormed()).replaceAll(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`;
}
