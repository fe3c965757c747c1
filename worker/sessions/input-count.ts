/** Counts a session's input bytes: accepted from the writer, taken by the command, and acknowledged to the writer. */
import { SandgateError } from "../../shared/errors.ts";
import { inputAckBytes, inputBytesMax } from "../../shared/stream/session/protocol.ts";

export class InputCount {
  #accepted = 0;
  #taken = 0;
  #told = 0;

  /** Total bytes accepted. */
  get accepted(): number {
    return this.#accepted;
  }

  /** @throws {SandgateError} `rate_limited` when too much input already waits for the command */
  accept(bytes: number): void {
    const waiting = this.#accepted - this.#taken;
    if (waiting + bytes > inputBytesMax) throw new SandgateError("rate_limited", `the command has not taken the last ${waiting} bytes of its input`);
    this.#accepted += bytes;
  }

  /** The command took `bytes`. @returns the total taken when it is time to acknowledge it */
  take(bytes: number): number | undefined {
    this.#taken += bytes;
    return this.#taken - this.#told >= inputAckBytes ? this.tell() : undefined;
  }

  /** The total taken by the command, which the caller now tells the writer. */
  tell(): number {
    this.#told = this.#taken;
    return this.#taken;
  }
}
