/** The person's terminal, or pipes, at one end of a session. */
import { spawnSync } from "node:child_process";
import type { Session } from "../client/session/session.ts";
import type { SessionEnd } from "../client/session/types.ts";
import { DetachKeys } from "./detach-keys.ts";
import { exitCodes } from "./failures.ts";
import { say } from "./output.ts";
import { print } from "./writing.ts";

interface Conversation {
  readonly sandboxId: string;
  /** Whether standard input is passed on. */
  readonly reads: boolean;
  readonly json: boolean;
}

/** Undefined where there is none. */
export function terminalSize(): { cols: number; rows: number } | undefined {
  const { columns, rows } = process.stdout;
  return columns && rows ? { cols: columns, rows } : undefined;
}

/** Passes everything on in both directions until the command ends or the person leaves. Returns the exit code. */
export async function converse(session: Session, { sandboxId, reads, json }: Conversation): Promise<number> {
  const isRaw = session.tty && reads && process.stdin.isTTY === true;
  if (isRaw) rawTerminal();
  const size = (): void => {
    const now = terminalSize();
    if (now && session.isWriter) session.resize(now.cols, now.rows);
  };
  if (session.tty) process.stdout.on("resize", size);
  if (session.tty) size();
  passSignals(session);
  let isLeft = false;
  const leave = (): void => {
    isLeft = true;
    session.detach();
  };
  // What cannot be written is told by the session's end.
  if (reads && session.isWriter) passInput(session, isRaw, leave).catch(() => {});
  await passOutput(session, json);
  restoreTerminal();
  if (isLeft) {
    say(`\nThe session goes on for a while; this joins it again: sandgate attach ${sandboxId} ${session.id}`);
    return exitCodes.done;
  }
  return ended(await session.exited, json);
}

function ended(end: SessionEnd, json: boolean): number {
  if (json) process.stdout.write(`${JSON.stringify(end)}\n`);
  else if (end.reason) say(`sandgate: ${end.reason}`);
  return end.exit_code;
}

async function passOutput(session: Session, json: boolean): Promise<void> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { stream, bytes } of session) {
    if (json) await print(process.stdout, `${JSON.stringify({ [stream]: decoders[stream].decode(bytes, { stream: true }) })}\n`);
    else await print(stream === "stdout" ? process.stdout : process.stderr, bytes);
  }
}

async function passInput(session: Session, isRaw: boolean, leave: () => void): Promise<void> {
  const keys = new DetachKeys();
  for await (const typed of process.stdin as AsyncIterable<Buffer>) {
    const { bytes, isDetach } = isRaw ? keys.read(typed) : { bytes: typed, isDetach: false };
    await session.write(bytes);
    if (isDetach) return leave();
  }
  await session.closeStdin();
}

/** Without a terminal, Ctrl-C is for the command; a second one, and a terminal that is closed, end it. */
function passSignals(session: Session): void {
  let interrupts = 0;
  process.on("SIGINT", () => {
    if (interrupts++ === 0 && session.isWriter) session.signal("SIGINT");
    else session.kill();
  });
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, () => session.kill());
}

function rawTerminal(): void {
  process.stdin.setRawMode(true);
  // Node leaves line ends to the terminal, but they are the business of the one in the sandbox. Taken back with the raw mode.
  spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
  // However the process ends, the person gets the terminal back as it was.
  process.once("exit", restoreTerminal);
}

function restoreTerminal(): void {
  if (process.stdin.isTTY && process.stdin.isRaw) process.stdin.setRawMode(false);
}
