/** One terminal of the page: its screen and the session behind it. */
import { AuthenticationError, PermissionDeniedError } from "../../../../shared/client/errors.ts";
import type { Session, SessionEnd } from "../../../../shared/client/session/session.ts";
import { closeReasons } from "../../../../shared/stream/session/protocol.ts";
import { count } from "../format.ts";
import { type Joining, joinShell, type Listeners, startShell } from "./connect.ts";
import type { Modifiers } from "./modifiers.ts";
import { Screen } from "./screen.ts";

/** How long to wait after a password change for the answer with the new cookie. */
const newPasswordMs = 1_500;

export type State =
  | { readonly name: "opening" }
  | { readonly name: "live"; readonly isWriter: boolean }
  | { readonly name: "reconnecting" }
  | { readonly name: "exited"; readonly end: SessionEnd }
  | { readonly name: "lost"; readonly error: unknown };

export interface LiveOptions {
  readonly sandboxId: string;
  readonly label: string;
  readonly modifiers: Modifiers;
  /** Called after every change of `state`. */
  readonly onChange: () => void;
  readonly onTitle: (title: string) => void;
  readonly onLeave: () => void;
}

export class Live {
  readonly label: string;
  readonly screen: Screen;
  readonly #options: LiveOptions;
  readonly #over = new AbortController();
  #session: Session | undefined;
  #state: State = { name: "opening" };
  /** The offset of the next byte of output. */
  #received = 0;
  /** Repeats the last attempt. */
  #again: () => Promise<void> = () => this.start();

  constructor(options: LiveOptions) {
    this.#options = options;
    this.label = options.label;
    const { label, modifiers, onLeave, onTitle } = options;
    this.screen = new Screen({
      label,
      modifiers,
      onLeave,
      signal: this.#over.signal,
      onInput: (data) => this.#type(data),
      onBinary: (bytes) => this.#type(bytes),
      onResize: ({ cols, rows }) => {
        if (this.isWriter) this.#session?.resize(cols, rows);
      },
    });
    this.screen.terminal.onTitleChange(onTitle);
  }

  get state(): State {
    return this.#state;
  }

  /** Undefined until the session runs. */
  get sessionId(): string | undefined {
    return this.#session?.id;
  }

  get isWriter(): boolean {
    return this.#session?.isWriter ?? false;
  }

  /** Whether the session is running. */
  get isRunning(): boolean {
    return this.#state.name === "live" || this.#state.name === "reconnecting";
  }

  /** Starts a new shell. The screen must be visible, because the shell is given its size. */
  start(): Promise<void> {
    this.#again = () => this.start();
    return this.#run((listeners) => startShell(this.#options.sandboxId, this.screen.size, listeners));
  }

  /** Joins a running session, from the start of its kept output or from where this terminal stopped. */
  join(sessionId: string, as: Joining["as"]): Promise<void> {
    const { sandboxId } = this.#options;
    this.#again = () => this.join(sessionId, as);
    return this.#run((listeners) => joinShell(sandboxId, { sessionId, since: this.#received, as }, listeners));
  }

  /** Becomes the writer in place of the current one. */
  async takeOver(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    this.#session = undefined;
    session.detach();
    await this.join(session.id, "take");
  }

  /** Tries again to connect. */
  reconnect(): Promise<void> {
    return this.#again();
  }

  /** Kills the session; its exit is still reported. */
  kill(): void {
    this.#session?.kill();
  }

  /** Detaches from the session, which keeps running, and removes the screen. */
  dispose(): void {
    const session = this.#session;
    this.#session = undefined;
    if (this.isRunning) session?.detach();
    this.#over.abort();
    this.screen.element.remove();
  }

  async #run(open: (listeners: Listeners) => Promise<Session>): Promise<void> {
    this.#become({ name: "opening" });
    let session: Session | undefined;
    const listeners: Listeners = {
      onGap: (from, to) => this.screen.note(`${count(to - from)} bytes of output are not kept any more`),
      onConnection: (isConnected) => this.#become(isConnected ? { name: "live", isWriter: session?.isWriter ?? false } : { name: "reconnecting" }),
      onResize: (size) => {
        if (!session?.isWriter) this.screen.hold(size);
      },
    };
    try {
      session = await open(listeners);
    } catch (error) {
      return this.#become({ name: "lost", error });
    }
    if (this.#over.signal.aborted) return session.detach();
    this.#session = session;
    const { id, isWriter } = session;
    this.#again = () => this.join(id, isWriter ? "take" : "watch");
    this.#become({ name: "live", isWriter });
    if (isWriter) {
      this.screen.release();
      session.resize(this.screen.size.cols, this.screen.size.rows);
    } else if (session.size) this.screen.hold(session.size);
    void this.#show(session);
  }

  /** Shows output until the session ends or this terminal leaves it. */
  async #show(session: Session): Promise<void> {
    try {
      for await (const { bytes, offset } of session) {
        if (this.#session !== session) return;
        this.#received = offset + bytes.length;
        await this.screen.write(bytes);
      }
      const end = await session.exited;
      if (this.#session !== session) return;
      this.screen.hideCursor();
      this.#become({ name: "exited", end });
    } catch (error) {
      if (this.#session === session) await this.#stopped(session, error);
    }
  }

  /** Handles the end of the connection. A writer that was replaced continues as a reader. */
  async #stopped(session: Session, error: unknown): Promise<void> {
    if (wasTakenOver(error)) return this.join(session.id, "watch");
    this.#become({ name: "lost", error });
    if (error instanceof AuthenticationError || (error instanceof PermissionDeniedError && error.reason === "suspended")) await this.#logInAgain();
  }

  /** Retries once: after a password change the browser has a new session. Otherwise the failing call leads to the page that explains why. */
  async #logInAgain(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, newPasswordMs));
    if (this.#over.signal.aborted || this.#state.name !== "lost") return;
    await this.#again();
  }

  #type(data: string | Uint8Array): void {
    if (!this.isRunning || !this.isWriter) return;
    this.#session?.write(data).catch((error: unknown) => console.warn(error));
  }

  #become(state: State): void {
    if (this.#over.signal.aborted) return;
    this.#state = state;
    this.screen.canType = state.name === "reconnecting" ? this.isWriter : state.name === "live" && state.isWriter;
    this.#options.onChange();
  }
}

/** Whether another client has become the writer of the session. */
function wasTakenOver(error: unknown): boolean {
  return error instanceof Error && error.message === closeReasons.takenOver.meaning;
}
