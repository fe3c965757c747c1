/** Bytes of input of a session: what it has accepted, what its command was given, and what its writer was told of that. */
import { SandgateError } from "../../shared/errors.ts";
import { inputAckBytes, inputBytesMax } from "../../shared/stream/session/protocol.ts";

export class InputCount {
  #accepted = 0;
  #taken = 0;
  #told = 0;

  /** In all. */
  get accepted(): number {
    return this.#accepted;
  }

  /** @throws {SandgateError} `rate_limited` when the command has too much before it already */
  accept(bytes: number): void {
    const waiting = this.#accepted - this.#taken;
    if (waiting + bytes > inputBytesMax) throw new SandgateError("rate_limited", `the command has not taken the last ${waiting} bytes of its input`);
    this.#accepted += bytes;
  }

  /** The command was given so much. @returns what it was given in all, where that is worth telling */
  take(bytes: number): number | undefined {
    this.#taken += bytes;
    return this.#taken - this.#told >= inputAckBytes ? this.tell() : undefined;
  }

  /** What the command was given in all, which the writer is told now. */
  tell(): number {
    this.#told = this.#taken;
    return this.#taken;
  }
}
