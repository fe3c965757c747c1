/**
 * What is typed at the person's terminal, from the first key to the last. While it is raw nothing is echoed, and every
 * byte comes here: none is left for the shell that reads after us.
 */
import { spawnSync } from "node:child_process";
import { pause } from "../waiting.ts";

/** A question that every terminal answers, and the answer: all answers to earlier questions have come before it. */
const question = "\u001b[5n";
const answer = "\u001b[0n";
/** How long a terminal that may be far away has for its answers. */
const answerMaxMs = 2_000;
/** Takes back what programs leave behind that are not there to tidy up: the other screen, reports of the mouse and of pasting, the hidden cursor. */
const calm = "\u001b[?1047l\u001b[!p\u001b[?9l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1004l\u001b[?1006l\u001b[?2004l\u001b[?25h\u001b[0m";

type Take = (typed: Uint8Array) => Promise<void> | void;

export class Keyboard {
  #take: Take;

  /**
   * @param isTerminal whether line ends are the business of a terminal in the sandbox
   * @param take is given what is typed; the next keys wait until it has them
   */
  constructor(isTerminal: boolean, take: Take) {
    this.#take = take;
    process.stdin.setRawMode(true);
    // Node leaves line ends to the terminal here. Taken back with the raw mode.
    if (isTerminal) spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
    // However the process ends, the person gets the terminal back as it was.
    process.once("exit", restore);
    void this.#read();
  }

  /**
   * Gives the terminal back.
   *
   * @param isAnswering whether answers of it to programs may be on their way, which go to nobody
   * @param isTidy whether programs have left it as they found it
   */
  async close({ isAnswering, isTidy }: { isAnswering: boolean; isTidy: boolean }): Promise<void> {
    this.#take = () => {};
    // Output may go through another program to the terminal.
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
      // What cannot be written is told by the session's end.
      await Promise.resolve(this.#take(typed)).catch(() => {});
    }
  }
}

function restore(): void {
  if (process.stdin.isTTY && process.stdin.isRaw) process.stdin.setRawMode(false);
}
