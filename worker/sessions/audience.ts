/**
 * The clients of a session, and the recent output kept for them.
 *
 * Output is read at the pace of the fastest client: as long as one of them has room. So a single client loses nothing, and a
 * slow one never holds up the others; it is told of a gap when it falls behind the kept output. Without clients, all output
 * is read, and the ring keeps the latest.
 */

import type { ClosedNotice, SessionNotice } from "../../shared/bus/contract/sessions.ts";
import type { ExitMessage } from "../../shared/schemas/sessions.ts";
import type { OutputChannel } from "../../shared/stream/session/protocol.ts";
import type { Attachment } from "./attachment.ts";
import { OutputRing } from "./ring.ts";

/** Output is sent once this much has accumulated, and otherwise once per turn of the event loop. */
const sendBytes = 64 * 1024;

/** The last notice to clients: how the command ended, or that this is unknown. */
export type Outcome = ExitMessage | ClosedNotice;

export class Audience {
  readonly #ring: OutputRing;
  readonly #attachments = new Set<Attachment>();
  #outcome: Outcome | undefined;
  #sending: NodeJS.Immediate | undefined;
  #sentTo = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #isLast = false;

  /** @param ringBytes how much output to keep. */
  constructor(ringBytes: number) {
    this.#ring = new OutputRing(ringBytes);
  }

  get size(): number {
    return this.#attachments.size;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Offset of the first byte kept. */
  get start(): number {
    return this.#ring.start;
  }

  /** Offset of the next byte. */
  get end(): number {
    return this.#ring.end;
  }

  /** The end of the output, at most so many bytes. */
  latest(bytesMax: number): Buffer {
    const parts: Buffer[] = [];
    for (let offset = Math.max(this.start, this.end - bytesMax); offset < this.end; ) {
      const { bytes } = this.#ring.read(offset, this.end - offset);
      parts.push(Buffer.from(bytes));
      offset += bytes.length;
    }
    return Buffer.concat(parts);
  }

  add(attachment: Attachment): void {
    this.#attachments.add(attachment);
  }

  remove(attachment: Attachment): void {
    this.#attachments.delete(attachment);
    this.#makeRoom();
  }

  /** Starts sending a client the output from this offset on, which must still be kept. */
  serve(attachment: Attachment, offset: number): void {
    attachment.startAt(offset);
    this.#sendTo(attachment);
    this.#makeRoom();
  }

  /** @throws {SandgateError} `invalid_request`. */
  acknowledged(from: Attachment, offset: number): void {
    from.acknowledge(offset);
    this.#sendTo(from);
    this.#makeRoom();
  }

  /** Notifies all clients except one. */
  tell(notice: SessionNotice, but: Attachment | undefined): void {
    for (const attachment of this.#attachments) if (attachment !== but) attachment.tell(notice);
  }

  append(channel: OutputChannel, chunk: Uint8Array): void {
    this.#ring.append(channel, chunk);
    if (this.#ring.end - this.#sentTo >= sendBytes) this.#send();
    else this.#sending ??= setImmediate(() => this.#send());
  }

  /** Resolves when output may be read. */
  async untilRoom(): Promise<void> {
    while (!this.#isLast && this.size > 0 && ![...this.#attachments].some((attachment) => attachment.hasRoom(this.#ring))) {
      this.#room ??= Promise.withResolvers<void>();
      await this.#room.promise;
    }
  }

  /** Stops waiting for room: everything that could write was killed, so only the little that was on its way remains. */
  takeLast(): void {
    this.#isLast = true;
    this.#makeRoom();
  }

  /** Ends the output. Clients are told once they have received it all, or at once if the session was lost. Only the first call counts. */
  close(outcome: Outcome): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    this.#send();
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #send(): void {
    clearImmediate(this.#sending);
    this.#sending = undefined;
    this.#sentTo = this.#ring.end;
    for (const attachment of [...this.#attachments]) this.#sendTo(attachment);
  }

  #sendTo(attachment: Attachment): void {
    if (this.#outcome?.type === "closed") return attachment.finish(this.#outcome);
    const isComplete = attachment.sendFrom(this.#ring);
    if (isComplete && this.#outcome) attachment.finish(this.#outcome);
  }
}
