/** `multipart/form-data` with the fields `path`, `mode` and `file`, in any order, the file as a stream. */
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { SandgateError } from "../../shared/errors.ts";
import type { BodyReader } from "./body.ts";

const fieldBytesMax = 8 * 1024;
const fieldsMax = 32;

export interface MultipartUpload {
  /** The fields that have arrived so far. */
  readonly fields: Readonly<Record<string, string>>;
  readonly file: AsyncIterable<Buffer>;
  /** Resolves when the whole form was read, with all of its fields. */
  readonly finished: Promise<Readonly<Record<string, string>>>;
}

const malformed = (cause?: unknown): SandgateError => new SandgateError("invalid_request", "the multipart body is not valid", { cause });

/** Reads the form up to the beginning of its file. @throws {SandgateError} `invalid_request`. */
export async function openMultipart(body: BodyReader, contentType: string): Promise<MultipartUpload> {
  const parser = parserFor(contentType);
  const fields: Record<string, string> = {};
  const found = Promise.withResolvers<BusboyFileStream>();
  const finished = Promise.withResolvers<Readonly<Record<string, string>>>();
  for (const promise of [found.promise, finished.promise]) promise.catch(() => {});
  let file: BusboyFileStream | undefined;
  const fail = (error: unknown): void => {
    const fault = error instanceof SandgateError ? error : malformed(error);
    found.reject(fault);
    finished.reject(fault);
    file?.destroy(fault);
  };
  parser.on("field", (name: string, value: string) => {
    if (name === "path" || name === "mode") fields[name] = value;
  });
  parser.on("file", (name: string, stream: BusboyFileStream) => {
    stream.on("error", () => {});
    if (name !== "file" || file) return void stream.resume();
    file = stream;
    found.resolve(stream);
  });
  parser.on("finish", () => {
    found.reject(new SandgateError("invalid_request", "Missing required field: file"));
    finished.resolve(fields);
  });
  parser.on("error", fail);
  void feed(parser, body).catch(fail);
  return { fields, file: await found.promise, finished: finished.promise };
}

function parserFor(contentType: string): BusboyInstance {
  try {
    return new Busboy({ headers: { "content-type": contentType }, limits: { fieldSize: fieldBytesMax, fields: fieldsMax, files: 4, parts: fieldsMax } });
  } catch (cause) {
    throw malformed(cause);
  }
}

async function feed(parser: BusboyInstance, body: BodyReader): Promise<void> {
  for await (const chunk of body.chunks()) {
    if (!parser.write(chunk)) await new Promise<void>((resolve) => parser.once("drain", resolve));
  }
  parser.end();
}
