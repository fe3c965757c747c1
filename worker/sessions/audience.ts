/**
 * The clients of a session, and the end of its output that is kept for them.
 *
 * Output is taken at the pace of the quickest client: as long as one of them has room for it, so that a single client
 * loses nothing, and a slow one never holds up the others but is told of a gap when it falls behind what is kept. With
 * nobody there output is taken and kept as far as there is room.
 */

import type { ClosedNotice, SessionNotice } from "../../shared/bus/contract/sessions.ts";
import type { ExitMessage } from "../../shared/schemas/session-messages.ts";
import type { OutputChannel } from "../../shared/stream/session/protocol.ts";
import type { Attachment } from "./attachment.ts";
import { OutputRing } from "./ring.ts";

/** Output is sent at the latest when so much has come together; before, once in each turn of the event loop. */
const sendBytes = 64 * 1024;

/** The last thing that clients are told: how the command ended, or that nobody knows. */
export type Outcome = ExitMessage | ClosedNotice;

export class Audience {
  readonly #ring: OutputRing;
  readonly #attachments = new Set<Attachment>();
  #outcome: Outcome | undefined;
  #sending: NodeJS.Immediate | undefined;
  #sentTo = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #isLast = false;

  /** @param ringBytes output that is kept. */
  constructor(ringBytes: number) {
    this.#ring = new OutputRing(ringBytes);
  }

  get size(): number {
    return this.#attachments.size;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Offset of the first byte that is kept. */
  get start(): number {
    return this.#ring.start;
  }

  /** Offset of the byte that comes next. */
  get end(): number {
    return this.#ring.end;
  }

  add(attachment: Attachment): void {
    this.#attachments.add(attachment);
  }

  remove(attachment: Attachment): void {
    this.#attachments.delete(attachment);
    this.#makeRoom();
  }

  /** From now on a client gets the output from this offset on, which must be one that is kept. */
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

  /** All but one. */
  tell(notice: SessionNotice, but: Attachment | undefined): void {
    for (const attachment of this.#attachments) if (attachment !== but) attachment.tell(notice);
  }

  append(channel: OutputChannel, chunk: Uint8Array): void {
    this.#ring.append(channel, chunk);
    if (this.#ring.end - this.#sentTo >= sendBytes) this.#send();
    else this.#sending ??= setImmediate(() => this.#send());
  }

  /** Resolves when output may be taken. */
  async untilRoom(): Promise<void> {
    while (!this.#isLast && this.size > 0 && ![...this.#attachments].some((attachment) => attachment.hasRoom(this.#ring))) {
      this.#room ??= Promise.withResolvers<void>();
      await this.#room.promise;
    }
  }

  /** What is still to come is little: no more than was on its way when everything that could write was killed. It is taken at once. */
  takeLast(): void {
    this.#isLast = true;
    this.#makeRoom();
  }

  /** No more output comes. Clients are told after what there is of it, of a loss at once. The first call counts. */
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
