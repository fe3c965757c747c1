/** The bytes of an upload: what comes at once is looked at before it is decided what becomes of it. */
import { fileCalls } from "../../shared/bus/contract/files.ts";
import { messageChecker } from "../../shared/bus/messages.ts";
import type { UploadTarget } from "../../shared/schemas/files.ts";
import type { Stream } from "../../shared/stream/stream.ts";
import { within } from "../../shared/waiting.ts";

const checkEnd = messageChecker(fileCalls.upload.stream.sent, "the end of an upload");
/** How long a small file may take to come. One that takes longer is written as it comes, like a large one. */
const soonMs = 100;

/** A file that came at once. */
export interface Whole {
  readonly content: Buffer;
  readonly target: UploadTarget;
}

export class Incoming {
  readonly #pieces: AsyncGenerator<Uint8Array, unknown, undefined>;
  readonly #account: (bytes: number) => void;
  /** Those that were looked at. */
  readonly #early: Uint8Array[] = [];
  #next: Promise<IteratorResult<Uint8Array, unknown>>;
  #size = 0;

  /** @param account called with the size of every piece before it is handed on; throws when it must not be written */
  constructor(stream: Stream, account: (bytes: number) => void) {
    this.#pieces = stream.read();
    this.#account = account;
    this.#next = this.#ahead();
  }

  /** Of all that has come. */
  get size(): number {
    return this.#size;
  }

  /** The whole file, if it comes soon and has no more bytes than that; otherwise undefined, and nothing is lost. @throws as the stream, and what `account` throws */
  async whole(bytesMax: number): Promise<Whole | undefined> {
    const endMs = performance.now() + soonMs;
    while (this.#size <= bytesMax) {
      const piece = await within(this.#next, Math.max(0, endMs - performance.now()));
      if (!piece) return undefined;
      if (piece.done) return { content: Buffer.concat(this.#early), target: checkEnd(piece.value) };
      this.#early.push(this.#counted(piece.value));
      this.#next = this.#ahead();
    }
    return undefined;
  }

  /** Hands on everything from the beginning, each piece when the previous one was taken. @throws as `whole`, and what `take` throws */
  async readEach(take: (piece: Uint8Array) => unknown): Promise<UploadTarget> {
    for (const piece of this.#early.splice(0)) await take(piece);
    let next = await this.#next;
    for (; !next.done; next = await this.#pieces.next()) await take(this.#counted(next.value));
    return checkEnd(next.value);
  }

  #ahead(): Promise<IteratorResult<Uint8Array, unknown>> {
    const next = this.#pieces.next();
    next.catch(() => {}); // It is waited for later, perhaps by nobody.
    return next;
  }

  #counted(piece: Uint8Array): Uint8Array {
    this.#account(piece.length);
    this.#size += piece.length;
    return piece;
  }
}
