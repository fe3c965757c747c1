/** What sessions give and take. */

export interface SessionOutput {
  /** A terminal has only `stdout`. */
  readonly stream: "stdout" | "stderr";
  /** Empty where something was left out. */
  readonly bytes: Uint8Array;
  /** Of the first byte, in all output of the session. */
  readonly offset: number;
}

export interface SessionEnd {
  /** The command's, or 128+n when signal n ended it. */
  readonly exit_code: number;
  /** Such as `SIGKILL`. */
  readonly signal?: string;
  /** Why the service ended the command, such as a limit. */
  readonly reason?: string;
}

/** Of a terminal, in characters. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface SessionListeners {
  /** Output from one offset up to another came while nobody was connected and is not kept any more. */
  onGap?: ((from: number, to: number) => void) | undefined;
  /** The connection was lost (`false`), and the session was joined again (`true`). */
  onConnection?: ((isConnected: boolean) => void) | undefined;
  /** The client that writes has given the terminal another size, in which its output is to be shown. */
  onResize?: ((size: TerminalSize) => void) | undefined;
}

/** The listeners among the options, and the other options. */
export function splitListeners<O extends SessionListeners>(options: O): [listeners: SessionListeners, others: Omit<O, keyof SessionListeners>] {
  const { onGap, onConnection, onResize, ...others } = options;
  return [{ onGap, onConnection, onResize }, others];
}

export interface SessionSettings extends SessionListeners {
  /** How long to try to join it again, in milliseconds. */
  readonly reattachMs: number;
  /** Whether it may be written to. */
  readonly readOnly: boolean;
}
