/** The user's terminal, or pipes, as one end of a session. */
import { QuestionFinder } from "../client/session/questions.ts";
import type { Session } from "../client/session/session.ts";
import type { SessionEnd } from "../client/session/types.ts";
import { exitCodes } from "./failures.ts";
import { DetachKeys, Keyboard } from "./keyboard.ts";
import { print, say, span } from "./output.ts";

interface Conversation {
  readonly sandboxId: string;
  /** Whether standard input is passed on. */
  readonly reads: boolean;
  readonly json: boolean;
}

/** Exit codes from here on mean that a signal ended the command. */
const killedExitCode = 128;

/** The size of the user's terminal; undefined if there is none. */
export function terminalSize(): { cols: number; rows: number } | undefined {
  const { columns, rows } = process.stdout;
  return columns && rows ? { cols: columns, rows } : undefined;
}

/** Passes input and output on until the command ends or the user detaches. Returns the exit code. */
export async function converse(session: Session, { sandboxId, reads, json }: Conversation): Promise<number> {
  const size = (): void => {
    const now = terminalSize();
    if (now && session.isWriter) session.resize(now.cols, now.rows);
  };
  if (session.tty) process.stdout.on("resize", size);
  if (session.tty) size();
  let isLeft = false;
  const leave = (): void => {
    isLeft = true;
    session.detach();
  };
  const interrupt = passSignals(session, leave);
  const keyboard = takeKeyboard(session, { reads, leave, interrupt });
  if (!keyboard && reads && session.isWriter) passInput(session).catch(() => {});
  const questions = keyboard && session.tty ? new Questions() : undefined;
  let isTidy = false;
  try {
    await passOutput(session, json, questions);
    isTidy = !isLeft && (await session.exited).exit_code < killedExitCode;
  } finally {
    await keyboard?.close({ isAnswering: questions?.wereAsked ?? false, isTidy: isTidy || !session.tty });
  }
  if (isLeft) {
    tellHowToJoin(session, sandboxId);
    return exitCodes.done;
  }
  return ended(await session.exited, json);
}

function tellHowToJoin({ id, isWriter, detachTimeoutS }: Session, sandboxId: string): void {
  const howLong = isWriter ? ` for ${span(detachTimeoutS)} when nobody is attached to it` : "";
  // The cursor may be anywhere in its line, and the terminal may still be in raw mode.
  const end = process.stderr.isTTY ? "\r\n" : "\n";
  process.stderr.write(`${end}The session goes on${howLong}; this joins it again: sandgate attach ${sandboxId} ${id}${end}`);
}

function ended(end: SessionEnd, json: boolean): number {
  if (json) process.stdout.write(`${JSON.stringify(end)}\n`);
  else if (end.reason) say(`sandgate: ${end.reason}`);
  return end.exit_code;
}

/** Whether programs have sent queries to the terminal. */
class Questions {
  readonly #finder = new QuestionFinder();
  wereAsked = false;

  look(bytes: Uint8Array): void {
    if (!this.wereAsked) this.wereAsked = this.#finder.read(bytes).some(({ isQuestion }) => isQuestion);
  }
}

async function passOutput(session: Session, json: boolean, questions: Questions | undefined): Promise<void> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { stream, bytes } of session) {
    if (bytes.length === 0) continue;
    questions?.look(bytes);
    if (json) await print(process.stdout, `${JSON.stringify({ [stream]: decoders[stream].decode(bytes, { stream: true }) })}\n`);
    else await print(stream === "stdout" ? process.stdout : process.stderr, bytes);
  }
}

interface Ways {
  readonly reads: boolean;
  readonly leave: () => void;
  readonly interrupt: () => void;
}

/** Takes over the user's keyboard if the sandbox has a terminal, or if this client only watches. */
function takeKeyboard(session: Session, { reads, leave, interrupt }: Ways): Keyboard | undefined {
  if (process.stdin.isTTY !== true || !(session.tty || !session.isWriter)) return undefined;
  const keys = new DetachKeys();
  const isHeard = reads && session.isWriter;
  if (!session.isWriter) say(`${reads ? "Another client writes to this session: you" : "You"} only watch; Ctrl-C or ctrl-p ctrl-q leaves.`);
  return new Keyboard(session.tty, async (typed) => {
    const { bytes, isDetach } = keys.read(typed);
    if (isHeard) await session.write(bytes);
    else if (isInterrupt(typed)) interrupt();
    if (isDetach) leave();
  });
}

/** Whether the input has a Ctrl-C, also in the encodings of extended keyboard protocols. */
const isInterrupt = (typed: Uint8Array): boolean =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what terminals send
  /\u0003|\u001b\[99;5(:1)?u|\u001b\[27;5;99~/.test(Buffer.from(typed).toString("latin1"));

async function passInput(session: Session): Promise<void> {
  for await (const typed of process.stdin as AsyncIterable<Buffer>) await session.write(typed);
  await session.closeStdin();
}

/**
 * Without a terminal, the first Ctrl-C is sent to the command; a second one ends it, and so does closing the terminal. For a
 * client that only watches, each of these detaches.
 *
 * @returns the handler for Ctrl-C
 */
function passSignals(session: Session, leave: () => void): () => void {
  let interrupts = 0;
  const end = (): void => (session.isWriter ? session.kill() : leave());
  const interrupt = (): void => {
    if (interrupts++ === 0 && session.isWriter) session.signal("SIGINT");
    else end();
  };
  process.on("SIGINT", interrupt);
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, end);
  return interrupt;
}
