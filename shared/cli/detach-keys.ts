/** ctrl-p ctrl-q, as in docker: leaves the session running. */

const ctrlP = 0x10;
const ctrlQ = 0x11;

export class DetachKeys {
  #held = false;

  /** Returns the bytes for the session. A ctrl-p is held back until the next key shows what it meant. */
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
