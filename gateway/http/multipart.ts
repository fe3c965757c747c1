/** `multipart/form-data` with the fields `path`, `mode` and `file`, each once and in any order. The file is streamed. */
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { SandgateError } from "../../shared/errors.ts";
import type { BodyReader } from "./body.ts";

const fieldBytesMax = 8 * 1024;
const fieldsMax = 32;
/** The Content-Transfer-Encodings that leave a part as it is. */
const encodings: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);

type Fields = Readonly<Record<string, string>>;

interface MultipartUpload {
  /** The fields that have arrived so far. */
  readonly fields: Fields;
  readonly file: AsyncIterable<Buffer>;
  /** Resolves with all fields when the whole form has been read; rejects with `invalid_request` when it is invalid. */
  readonly finished: Promise<Fields>;
}

const invalid = (message: string, cause?: unknown): SandgateError => new SandgateError("invalid_request", message, { cause });
const malformed = (cause?: unknown): SandgateError => invalid("the multipart body is not valid", cause);

/** Reads the form up to the start of the file. @throws {SandgateError} `invalid_request`. */
export async function openMultipart(body: BodyReader, contentType: string): Promise<MultipartUpload> {
  const form = new Form(contentType);
  void form.feed(body);
  return { fields: form.fields, file: await form.found.promise, finished: form.finished.promise };
}

class Form {
  readonly fields: Record<string, string> = {};
  readonly found = Promise.withResolvers<BusboyFileStream>();
  readonly finished = Promise.withResolvers<Fields>();
  readonly #parser: BusboyInstance;
  #file: BusboyFileStream | undefined;
  #failed = false;

  constructor(contentType: string) {
    for (const promise of [this.found.promise, this.finished.promise]) promise.catch(() => {});
    this.#parser = parserFor(contentType);
    this.#parser.on("field", (name, value, nameTruncated, valueTruncated, encoding) => this.#takeField(name, value, nameTruncated || valueTruncated, encoding));
    this.#parser.on("file", (name, stream, _filename, encoding) => this.#takeFile(name, stream, encoding));
    for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const) this.#parser.on(limit, () => this.#fail(invalid("the form has too many fields")));
    this.#parser.on("error", (error: unknown) => this.#fail(malformed(error)));
    this.#parser.on("finish", () => {
      this.found.reject(invalid("Missing required field: file"));
      this.finished.resolve(this.fields);
    });
  }

  async feed(body: BodyReader): Promise<void> {
    try {
      for await (const chunk of body.chunks()) {
        if (!this.#parser.write(chunk)) await new Promise<void>((resolve) => this.#parser.once("drain", resolve));
      }
      this.#parser.end();
    } catch (error) {
      this.#fail(error instanceof SandgateError ? error : malformed(error));
    }
  }

  /** @param name undefined for a part that has none, whatever the parser's types say; the same holds for files */
  #takeField(name: string | undefined, value: string, isTruncated: boolean, encoding: string): void {
    if (name === undefined) return this.#fail(nameless());
    if (name === "file") return this.#fail(invalid('the field file must have a filename, as in filename="data.csv"'));
    if (name !== "path" && name !== "mode") return this.#fail(invalid(`Unknown field: ${name.slice(0, 100)}`));
    if (Object.hasOwn(this.fields, name)) return this.#fail(invalid(`the field ${name} must come only once`));
    if (isTruncated) return this.#fail(invalid(`the field ${name} must be at most ${fieldBytesMax} bytes`));
    if (!encodings.has(encoding)) return this.#fail(notEncoded(name));
    this.fields[name] = value;
  }

  #takeFile(name: string | undefined, stream: BusboyFileStream, encoding: string): void {
    stream.on("error", () => {});
    const fault = this.#faultOfFile(name, encoding);
    if (fault) {
      stream.resume();
      return this.#fail(fault);
    }
    this.#file = stream;
    this.found.resolve(stream);
  }

  #faultOfFile(name: string | undefined, encoding: string): SandgateError | undefined {
    if (name === undefined) return nameless();
    if (name === "path" || name === "mode") return invalid(`the field ${name} must be text, without a filename`);
    if (name !== "file") return invalid(`Unknown field: ${name.slice(0, 100)}`);
    if (this.#file) return invalid("the field file must come only once: upload one file with each call");
    return encodings.has(encoding) ? undefined : notEncoded(name);
  }

  #fail(error: SandgateError): void {
    if (this.#failed) return;
    this.#failed = true;
    this.found.reject(error);
    this.finished.reject(error);
    this.#file?.destroy(error);
  }
}

const nameless = (): SandgateError => invalid('each part of the form must have a name, as in name="path"');
const notEncoded = (name: string): SandgateError => invalid(`the field ${name} must be sent as it is, without a Content-Transfer-Encoding`);

function parserFor(contentType: string): BusboyInstance {
  try {
    return new Busboy({ headers: { "content-type": contentType }, limits: { fieldSize: fieldBytesMax, fields: fieldsMax, files: 4, parts: fieldsMax } });
  } catch (cause) {
    throw malformed(cause);
  }
}
