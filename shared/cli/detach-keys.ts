/** ctrl-p ctrl-q, as docker has it: leaves the session and lets it go on. */

const ctrlP = 0x10;
const ctrlQ = 0x11;

export class DetachKeys {
  #held = false;

  /** What is for the session. A ctrl-p is held back until the next key says what it was. */
  read(typed: Uint8Array): { bytes: Uint8Array; isDetach: boolean } {
    const bytes: number[] = [];
    for (const key of typed) {
      if (this.#held && key === ctrlQ) return { bytes: Uint8Array.from(bytes), isDetach: true };
      if (this.#held) bytes.push(ctrlP);
      this.#held = key === ctrlP;
      if (!this.#held) bytes.push(key);
    }
    return { bytes: Uint8Array.from(bytes), isDetach: false };
  }
}
