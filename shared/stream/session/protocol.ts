/**
 * The WebSocket protocol of live sessions: names, limits and close codes. Nothing in this folder needs Node.js, so that
 * browsers can use it unchanged.
 */
import { type ErrorCode, statusOf } from "../../errors.ts";

/** The protocol that clients must offer in `Sec-WebSocket-Protocol`. */
export const subprotocol = "sandgate.exec.v1";

/** Largest binary frame in either direction, its header included. */
export const frameBytesMax = 64 * 1024;
/** Largest first text frame from a client: a start with a long command and many variables. */
export const controlBytesMax = 1024 * 1024;
/** Largest text frame from a client after its first one. */
export const laterControlBytesMax = 4 * 1024;
/** Output that a client may leave unacknowledged before it is paused. */
export const windowBytes = 256 * 1024;
/** Limit for input that the program has not read yet. Clients should wait for `input_ack` at a quarter of it; beyond it they are disconnected. */
export const inputBytesMax = 1024 * 1024;
/** `input_ack` is sent after each this many bytes of input. */
export const inputAckBytes = 32 * 1024;
/** Output of a session kept for replay, unless a setting says otherwise. */
export const ringBytesDefault = 1024 * 1024;

/** How long a session outlives its last socket, in seconds, unless `start` says otherwise. */
export const detachTimeoutDefaultS = 60;
/** Maximum of `detach_timeout` in seconds. */
export const detachTimeoutMaxS = 3_600;
/** Maximum of `timeout` in seconds. */
export const timeoutMaxS = 604_800;
/** How often the server pings, in milliseconds. A socket that has shown no sign of life between two pings is closed. */
export const pingMs = 30_000;
/** How long a client may take to send its first message, in milliseconds. */
export const firstMessageMs = 30_000;

/** The size of a terminal if the client gives none. */
export const terminalDefault = { cols: 80, rows: 24 } as const;

/** Channels of binary frames. */
export const channels = { stdin: 0, stdout: 1, stderr: 2 } as const;
export type OutputChannel = (typeof channels)["stdout" | "stderr"];

interface CloseReason {
  readonly code: number;
  readonly meaning: string;
  /** Whether the session probably lives on, so that clients should attach again automatically. */
  readonly reattach: boolean;
}

/** Why the server closes a socket. Errors of the closed set use the code 4000 + their HTTP status. */
export const closeReasons = {
  done: { code: 1000, meaning: "the session has ended and `exit` was sent, or the client asked to detach", reattach: false },
  restart: { code: 1012, meaning: "the gateway is shutting down; attach again, through any gateway", reattach: true },
  takenOver: { code: 4001, meaning: "another client has taken the session over", reattach: false },
  inputOverflow: { code: 4002, meaning: `the client sent more than ${inputBytesMax} bytes that the program has not read`, reattach: true },
  outputLost: { code: 4003, meaning: "output could not be delivered on this socket; attach again with `since`", reattach: true },
  sessionLost: { code: 4004, meaning: "the session has ended without an exit code: its worker was stopped or its sandbox is gone", reattach: false },
} as const satisfies Record<string, CloseReason>;

/** Errors after which the session may live on, so that attaching again may work. */
const passing: readonly ErrorCode[] = ["unavailable", "worker_lost", "internal_error", "rate_limited"];

/** The close code that follows an `error` message, 4000 + the HTTP status of its code. */
export function closeCodeOf(code: ErrorCode): number {
  return 4_000 + statusOf[code];
}

/** Whether a client should attach again automatically after its socket was closed with this code. */
export function shouldReattach(closeCode: number): boolean {
  const named = Object.values<CloseReason>(closeReasons).find(({ code }) => code === closeCode);
  if (named) return named.reattach;
  // Codes below 4000 belong to the network and the browser, such as 1006 for a broken connection.
  return closeCode < 4_000 || passing.some((code) => closeCodeOf(code) === closeCode);
}

/** Signal names by number, as in Linux on x86-64 and arm64. */
const signalNames =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );

/** Normalizes a signal name: `SIGINT` for `SIGINT` or `INT`; undefined if the text is not a signal. */
export function signalName(text: string): string | undefined {
  const name = text.toUpperCase().replace(/^SIG/, "");
  return signalNames.includes(name) ? `SIG${name}` : undefined;
}

/** The signal for an exit code 128+n as reported by shells, such as `SIGKILL` for 137. */
export function signalOfExitCode(exitCode: number): string | undefined {
  const name = signalNames[exitCode - 129];
  return name && `SIG${name}`;
}
