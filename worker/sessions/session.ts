/** A live session: one command, its clients, at most one of which may write, and how long it outlives them. */

import type { Request } from "../../shared/bus/contract/contract.ts";
import type { StreamTarget } from "../../shared/bus/contract/fields.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/sessions.ts";
import { nextSessionState, type SessionEvent, type SessionState } from "../../shared/state/session.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import { channels, signalName } from "../../shared/stream/session/protocol.ts";
import { Preview } from "../exec/output.ts";
import type { End } from "../log/entry.ts";
import { type Interactive, type Output, outOfMemory, type Size, sigkillExitCode } from "../runtime/container/command.ts";
import type { Activity } from "../sandboxes/registry.ts";
import { Attachment } from "./attachment.ts";
import { Audience } from "./audience.ts";
import { type CarriedSession, carriedOutputBytesMax } from "./carried.ts";
import { SessionClocks, type Times } from "./clocks.ts";
import { endOf, exitMessage, failedEnd, type Stop } from "./end.ts";
import { InputCount } from "./input-count.ts";

/** The most clients of one session at a time. */
const attachmentsMax = 64;

/** What a session is: how it was asked for, by its first client or in the source of a copy. */
export type SessionCall = Omit<Request<"sessionStart">, "to" | "env">;

export interface SessionSettings extends Omit<Times, "timeoutMs"> {
  readonly ringBytes: number;
}

export interface SessionEvents {
  /** The command has ended and all its output was read. */
  ended(session: Session, end: End): void;
  /** Nobody can attach any more. */
  gone(session: Session): void;
  /** An internal error occurred. */
  failed(session: Session, error: unknown): void;
}

export class Session implements Activity {
  readonly kind = "session";
  readonly call: SessionCall;
  readonly createdAtMs = Date.now();
  readonly stdout = new Preview();
  readonly stderr = new Preview();
  readonly #hub: StreamHub;
  readonly #settings: SessionSettings;
  readonly #events: SessionEvents;
  readonly #audience: Audience;
  #writer: Attachment | undefined;
  /** The terminal's size; undefined without a terminal. */
  #size: Size | undefined;
  #command: Interactive | undefined;
  #state: SessionState = "starting";
  /** The first reason for which the session is being ended. */
  #stop: Stop | undefined;
  #killed: Promise<void> | undefined;
  readonly #input = new InputCount();
  readonly #clocks: SessionClocks;

  constructor(call: SessionCall, hub: StreamHub, settings: SessionSettings, events: SessionEvents) {
    this.call = call;
    this.#hub = hub;
    this.#size = call.terminal;
    this.#settings = settings;
    this.#events = events;
    this.#audience = new Audience(settings.ringBytes);
    this.#clocks = new SessionClocks({ ...settings, timeoutMs: call.timeout_ms }, this);
  }

  /** Whether its clients were told how it ended, or that this is unknown. */
  get ended(): boolean {
    return this.#state === "ended" || this.#state === "lost";
  }

  /** Whether this worker has one side of its terminal, so that no image of memory can include it. */
  get isTied(): boolean {
    return this.#size !== undefined && this.#command !== undefined && this.#command.inside === undefined;
  }

  /** Holds its terminal still, if it has one. @returns why it cannot go on in a copy as it is now; undefined if it can */
  async hold(): Promise<string | undefined> {
    if (this.ended || !this.#command?.inside) return undefined;
    const unread = await this.#command.inside.hold();
    if (unread === undefined) return this.ended ? undefined : "a terminal does not hold still";
    return unread > 0 ? "a program in a terminal has not read yet what was typed" : undefined;
  }

  letGo(): void {
    this.#command?.inside?.goOn();
  }

  /** What a copy needs to go on with it; undefined if it cannot. */
  carried(): CarriedSession | undefined {
    const { session_id, command, working_dir } = this.call;
    const keeper = this.#command?.inside?.keeper;
    if (keeper === undefined || !this.#size || this.#state !== "running") return undefined;
    const { detachMs: detach_ms } = this.#settings;
    const timeout_ms = this.#clocks.leftMs;
    const output = this.#audience.latest(carriedOutputBytesMax).toString("base64");
    return {
      ...{ session_id, terminal: this.#size, detach_ms, keeper, output },
      ...(command === undefined ? {} : { command }),
      ...(working_dir === undefined ? {} : { working_dir }),
      ...(timeout_ms === undefined ? {} : { timeout_ms }),
    };
  }

  get clients(): number {
    return this.#audience.size;
  }

  /** Whether its command runs, or some clients have not received all of its output. */
  get isBusy(): boolean {
    return !this.ended || this.#audience.size > 0;
  }

  /** The command has started. Its first client, unless gone by now, is told and gets the output. */
  run(command: Interactive, first: Attachment): void {
    // Only this client could know about the session.
    if (first.closed) this.killFor("its client went away before it had started");
    this.#begin(command, () => this.#welcome(first, 0));
  }

  /** Its command goes on in a copy. It has no client yet. @param output what it has written last */
  goOn(command: Interactive, output: Uint8Array): void {
    this.#audience.append(channels.stdout, output);
    this.#begin(command, () => this.#clocks.left());
  }

  #begin(command: Interactive, welcome: () => void): void {
    this.#command = command;
    this.#become("started");
    welcome();
    this.#follow(command).catch((error: unknown) => this.#events.failed(this, error));
    this.#clocks.start();
  }

  /** The client that starts the session; it receives nothing before `run`. */
  attachFirst(target: StreamTarget): Attachment {
    const attachment = new Attachment(this.#hub, target, this);
    this.#audience.add(attachment);
    this.#writer = attachment;
    return attachment;
  }

  /** @throws {SandgateError} `invalid_request`, `rate_limited`. */
  attach(target: StreamTarget, { since = this.#audience.end, takeover, read_only }: { since?: number; takeover: boolean; read_only: boolean }): void {
    if (since > this.#audience.end) throw new SandgateError("invalid_request", `since must be at most ${this.#audience.end}, the end of the output`);
    if (this.#audience.size >= attachmentsMax) throw new SandgateError("rate_limited", `the session has ${attachmentsMax} clients, which is its limit`);
    const attachment = new Attachment(this.#hub, target, this);
    this.#clocks.joined();
    this.#audience.add(attachment);
    const former = this.#writer;
    if (!read_only && !this.ended && (takeover || !former)) this.#writer = attachment;
    if (former && this.#writer !== former) former.fail(new SandgateError("conflict", "another client has taken the session over"), "takenOver");
    this.#welcome(attachment, since);
  }

  /** Ends the session without an exit code. */
  abort({ code, message }: SandgateError): void {
    this.#audience.close({ type: "closed", reason: "sessionLost", code, message });
    this.#become("lose");
  }

  /** Kills its processes as a limit would: the exit code is that of a killed command, and the reason is reported with it. */
  killFor(reason: string): void {
    this.stop({ kind: "limit", reason });
  }

  /** Ends its processes; the first reason counts. */
  stop(stop: Stop): void {
    if (!this.ended) this.#stop ??= stop;
    this.#become("stop");
  }

  /** No client has attached for `detachMs`: ends the command, or drops the last output. */
  alone(detachMs: number): void {
    if (this.ended) this.#events.gone(this);
    else this.killFor(`nobody was attached for ${detachMs / 1_000} s`);
  }

  /** The command took `bytes` of its input. */
  taken(bytes: number): void {
    const offset = this.#input.take(bytes);
    if (offset !== undefined) this.#writer?.tell({ type: "input_ack", offset });
  }

  message(from: Attachment, message: ClientMessage): void {
    try {
      if (message.type === "ack") return this.#audience.acknowledged(from, message.offset);
      if (from !== this.#writer) throw new SandgateError("forbidden", "this client may only read", { reason: "read_only" });
      this.#control(message);
    } catch (error) {
      from.fail(SandgateError.from(error));
    }
  }

  input(from: Attachment, bytes: Uint8Array): void {
    if (this.ended) return;
    if (from !== this.#writer) return from.fail(new SandgateError("forbidden", "this client may only read", { reason: "read_only" }));
    this.#clocks.traffic();
    try {
      this.#input.accept(bytes.length);
    } catch (error) {
      return from.fail(SandgateError.from(error), "inputOverflow");
    }
    this.#command?.input.write(bytes);
  }

  /** A client has left, whichever side ended it; comes once for each. */
  closed(attachment: Attachment): void {
    this.#audience.remove(attachment);
    if (this.#writer === attachment) this.#writer = undefined;
    if (this.#audience.size === 0) this.#clocks.left();
  }

  #control(message: ClientMessage): void {
    this.#clocks.traffic();
    const command = this.#command;
    if (!command || this.ended) return;
    if (message.type === "resize") this.#resize(command, message);
    else if (message.type === "stdin_close") command.input.end();
    else if (message.type === "signal") void command.signal(signalOf(message.signal)).catch(() => {});
    else if (message.type === "kill") this.stop({ kind: "asked", reason: "its client asked to end it" });
  }

  #resize(command: Interactive, { cols, rows }: Size): void {
    if (!this.#size) return;
    this.#size = { cols, rows };
    command.resize(this.#size);
    this.#audience.tell({ type: "resize", ...this.#size }, this.#writer);
  }

  #welcome(attachment: Attachment, since: number): void {
    const { session_id, terminal } = this.call;
    const offset = Math.max(since, this.#audience.start);
    this.#input.tell();
    const writer = attachment === this.#writer;
    attachment.tell({
      type: "started",
      session_id,
      tty: terminal !== undefined,
      ...this.#size,
      writer,
      offset,
      output_offset: this.#audience.end,
      input_offset: this.#input.accepted,
      detach_timeout: this.#settings.detachMs / 1_000,
    });
    if (since < offset) attachment.tell({ type: "gap", from: since, to: offset });
    this.#audience.serve(attachment, offset);
  }

  /** Follows the command and its output to the end. */
  async #follow(command: Interactive): Promise<void> {
    let exitCode = sigkillExitCode;
    try {
      [exitCode] = await Promise.all([command.exited, ...command.outputs.map((output) => this.#read(output))]);
      // The command itself may end before the processes it started.
      await this.#killed;
      const { error } = outOfMemory(command, exitCode);
      if (error) this.#stop ??= { kind: "limit", reason: error };
      this.#audience.close(exitMessage(exitCode, this.#stop, this.call.command));
    } catch (error) {
      this.#events.failed(this, error);
      this.abort(SandgateError.from(error));
    } finally {
      this.#clocks.stop();
      command.close();
    }
    this.#become("exited");
    const { outcome } = this.#audience;
    this.#events.ended(this, outcome?.type === "closed" ? failedEnd(outcome.message) : endOf(exitCode, this.#stop));
    if (this.#audience.size === 0) this.#clocks.left();
  }

  async #read({ channel, reader }: Output): Promise<void> {
    const preview = channel === 1 ? this.stdout : this.stderr;
    for (;;) {
      await this.#audience.untilRoom();
      const chunk = await reader.nextBatch();
      if (!chunk) return;
      this.#clocks.traffic();
      preview.add(chunk);
      this.#audience.append(channel, chunk);
    }
  }

  #become(event: SessionEvent): void {
    this.#state = nextSessionState(this.#state, event) ?? this.#state;
    if (this.#state === "ending" || this.#state === "lost") this.#kill();
  }

  #kill(): void {
    if (!this.#command || this.#killed) return;
    const killed = this.#command.kill().catch((error: unknown) => this.#events.failed(this, error));
    this.#killed = killed.finally(() => this.#audience.takeLast());
  }
}

/** @throws {SandgateError} `invalid_request`. */
function signalOf(text: string): NodeJS.Signals {
  const name = signalName(text);
  if (!name) throw new SandgateError("invalid_request", `there is no signal ${text}`);
  return name as NodeJS.Signals;
}
