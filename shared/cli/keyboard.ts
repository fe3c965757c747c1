/**
 * Input from the user's terminal, from the first key to the last. In raw mode nothing is echoed and every byte is read here,
 * so that none is left for the shell afterwards.
 */
import { spawnSync } from "node:child_process";
import { pause } from "../waiting.ts";

/** A query that every terminal answers. Its answer arrives after the answers to all earlier queries. */
const question = "\u001b[5n";
const answer = "\u001b[0n";
/** How long to wait for the answers of a terminal, which may be far away. */
const answerMaxMs = 2_000;
/** Resets what programs may leave behind: the alternate screen, mouse and paste reports, the hidden cursor. */
const calm = "\u001b[?1047l\u001b[!p\u001b[?9l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1004l\u001b[?1006l\u001b[?2004l\u001b[?25h\u001b[0m";

type Take = (typed: Uint8Array) => Promise<void> | void;

export class Keyboard {
  #take: Take;

  /**
   * @param isTerminal whether a terminal in the sandbox handles line ends
   * @param take receives the input; further input waits until it is done
   */
  constructor(isTerminal: boolean, take: Take) {
    this.#take = take;
    process.stdin.setRawMode(true);
    // Node leaves output line ends to this terminal. Leaving raw mode restores the setting.
    if (isTerminal) spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
    // Restores the user's terminal however the process ends.
    process.once("exit", restore);
    void this.#read();
  }

  /**
   * Restores the terminal.
   *
   * @param isAnswering whether answers of the terminal to queries may still arrive, which are then discarded
   * @param isTidy whether programs have left the terminal in its original state
   */
  async close({ isAnswering, isTidy }: { isAnswering: boolean; isTidy: boolean }): Promise<void> {
    this.#take = () => {};
    // Standard output may go through another program, so any stream that is a terminal is used.
    const screen = [process.stdout, process.stderr].find(({ isTTY }) => isTTY);
    if (!isTidy) screen?.write(calm);
    if (isAnswering && screen) await this.#untilAnswered(screen);
    restore();
  }

  async #untilAnswered(screen: NodeJS.WriteStream): Promise<void> {
    const late = new AbortController();
    let typed = "";
    this.#take = (bytes) => {
      typed = (typed + Buffer.from(bytes).toString("latin1")).slice(-2 * answer.length - bytes.length);
      if (typed.includes(answer)) late.abort();
    };
    screen.write(question);
    await pause(answerMaxMs, late.signal).catch(() => {});
  }

  async #read(): Promise<void> {
    for await (const typed of process.stdin as AsyncIterable<Buffer>) {
      // Input that cannot be written is ignored; the end of the session reports the reason.
      await Promise.resolve(this.#take(typed)).catch(() => {});
    }
  }
}

function restore(): void {
  if (process.stdin.isTTY && process.stdin.isRaw) process.stdin.setRawMode(false);
}

const ctrlP = 0x10;
const ctrlQ = 0x11;

/** ctrl-p ctrl-q, as in docker: leaves the session running. */
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
