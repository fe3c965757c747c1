/** One terminal of the page: what one sees, and the session behind it. */
import { AuthenticationError, PermissionDeniedError } from "../../../../shared/client/errors.ts";
import type { Session, SessionEnd } from "../../../../shared/client/session/session.ts";
import { closeReasons } from "../../../../shared/stream/session/protocol.ts";
import { count } from "../format.ts";
import { type Joining, joinShell, type Listeners, startShell } from "./connect.ts";
import type { Modifiers } from "./modifiers.ts";
import { Screen } from "./screen.ts";

/** So long at most a new password's answer, with the new cookie, is on its way. */
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
  /** Told of every change; the state is `state`. */
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
  /** Of the first byte that has not come yet. */
  #received = 0;
  /** Does once more what did not work. */
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

  /** Known once it runs. */
  get sessionId(): string | undefined {
    return this.#session?.id;
  }

  get isWriter(): boolean {
    return this.#session?.isWriter ?? false;
  }

  /** Whether there is something behind it that goes on. */
  get isRunning(): boolean {
    return this.#state.name === "live" || this.#state.name === "reconnecting";
  }

  /** A new shell. To be called when the screen is seen, because the shell is told its size. */
  start(): Promise<void> {
    this.#again = () => this.start();
    return this.#run((listeners) => startShell(this.#options.sandboxId, this.screen.size, listeners));
  }

  /** A session that runs, from the beginning of what is kept of it, or from where this one has stopped. */
  join(sessionId: string, as: Joining["as"]): Promise<void> {
    const { sandboxId } = this.#options;
    this.#again = () => this.join(sessionId, as);
    return this.#run((listeners) => joinShell(sandboxId, { sessionId, since: this.#received, as }, listeners));
  }

  /** Takes the pen from whoever has it. */
  async takeOver(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    this.#session = undefined;
    session.detach();
    await this.join(session.id, "take");
  }

  /** Tries once more what was given up. */
  reconnect(): Promise<void> {
    return this.#again();
  }

  /** Ends what runs; its exit still comes. */
  kill(): void {
    this.#session?.kill();
  }

  /** Leaves the session, which goes on, and takes the screen away. */
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

  /** Until the end of the session, or of our part in it. */
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

  /** Whoever has lost the pen goes on watching. */
  async #stopped(session: Session, error: unknown): Promise<void> {
    if (wasTakenOver(error)) return this.join(session.id, "watch");
    this.#become({ name: "lost", error });
    if (error instanceof AuthenticationError || (error instanceof PermissionDeniedError && error.reason === "suspended")) await this.#logInAgain();
  }

  /** After a new password this browser is logged in as before; otherwise the call that fails leads to the page that says why. */
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

/** The session goes on, with somebody else at the keyboard. */
function wasTakenOver(error: unknown): boolean {
  return error instanceof Error && error.message === closeReasons.takenOver.meaning;
}
