/** The inputs and outputs of sessions. */

export interface SessionOutput {
  /** With a terminal, always `stdout`. */
  readonly stream: "stdout" | "stderr";
  /** Empty where a query was left out. */
  readonly bytes: Uint8Array;
  /** Offset of the first byte in the session's whole output. */
  readonly offset: number;
}

export interface SessionEnd {
  /** The command's exit code, or 128+n when signal n ended it. */
  readonly exit_code: number;
  /** Such as `SIGKILL`. */
  readonly signal?: string;
  /** Why the service ended the command, such as a limit. */
  readonly reason?: string;
}

/** The size of a terminal in characters. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface SessionListeners {
  /** Called when output between two offsets was written while the client was not connected and is no longer available. */
  onGap?: ((from: number, to: number) => void) | undefined;
  /** Called when the connection is lost (`false`) and when the session has been rejoined (`true`). */
  onConnection?: ((isConnected: boolean) => void) | undefined;
  /** Called when the client that writes has resized the terminal. Show the output in this size. */
  onResize?: ((size: TerminalSize) => void) | undefined;
}

/** Separates the listeners from the other options. */
export function splitListeners<O extends SessionListeners>(options: O): [listeners: SessionListeners, others: Omit<O, keyof SessionListeners>] {
  const { onGap, onConnection, onResize, ...others } = options;
  return [{ onGap, onConnection, onResize }, others];
}

export interface SessionSettings extends SessionListeners {
  /** How long to try to rejoin, in milliseconds. */
  readonly reattachMs: number;
  /** Whether this client only reads. */
  readonly readOnly: boolean;
}
