/** A live session: one command, its clients, of whom one may write, and the time that it outlives them. */

import type { StreamTarget } from "../../shared/bus/messages.ts";
import type { SessionStartCall, SessionSummary } from "../../shared/bus/sessions.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { ExecutionStatus } from "../../shared/schemas/executions.ts";
import type { ClientMessage } from "../../shared/schemas/session-messages.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import { inputAckBytes, inputBytesMax, signalName, signalOfExitCode } from "../../shared/stream/session/protocol.ts";
import { Preview } from "../exec/output.ts";
import type { Interactive, Output } from "../runtime/container/command.ts";
import type { Size } from "../runtime/container/terminals.ts";
import type { Activity } from "../sandboxes/registry.ts";
import { Attachment, type AttachmentEvents } from "./attachment.ts";
import { Audience } from "./audience.ts";

/** Clients of one session at the same time. */
const attachmentsMax = 64;

export interface SessionSettings {
  readonly ringBytes: number;
  readonly detachMs: number;
  /** Without input and output for this long it is ended; 0: never. */
  readonly idleMs: number;
}

/** How it ended, for the log. */
export interface SessionEnd {
  readonly status: Exclude<ExecutionStatus, "running">;
  readonly exitCode: number;
  readonly error: string | undefined;
}

/** Why it is being ended by us. */
interface Stop {
  readonly kind: "asked" | "timeout" | "limit";
  readonly reason: string;
}

export interface SessionEvents {
  /** The command has ended, and all of its output was read. */
  ended(session: Session, end: SessionEnd): void;
  /** Nobody can attach any more. */
  gone(session: Session): void;
  /** Something broke that is nobody's fault but ours. */
  failed(session: Session, error: unknown): void;
}

const sigkillExitCode = 137;
const timeoutExitCode = 124;

export class Session implements Activity, AttachmentEvents {
  readonly kind = "session";
  readonly call: SessionStartCall;
  readonly createdAtMs = Date.now();
  readonly stdout = new Preview();
  readonly stderr = new Preview();
  readonly #hub: StreamHub;
  readonly #settings: SessionSettings;
  readonly #events: SessionEvents;
  readonly #audience: Audience;
  #writer: Attachment | undefined;
  /** Of its terminal; undefined without one. */
  #size: Size | undefined;
  #command: Interactive | undefined;
  #stop: Stop | undefined;
  #killing: Promise<void> | undefined;
  #input = { accepted: 0, taken: 0, told: 0 };
  #detached: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  #timeout: NodeJS.Timeout | undefined;
  #trafficAtMs = Date.now();

  constructor(call: SessionStartCall, hub: StreamHub, settings: SessionSettings, events: SessionEvents) {
    this.call = call;
    this.#hub = hub;
    this.#size = call.terminal;
    this.#settings = settings;
    this.#events = events;
    this.#audience = new Audience(settings.ringBytes);
  }

  get ended(): boolean {
    return this.#audience.outcome !== undefined;
  }

  /** Whether it has a command that runs, or clients that have not taken all of its output. */
  get isBusy(): boolean {
    return !this.ended || this.#audience.size > 0;
  }

  get summary(): SessionSummary {
    const { session_id, command, terminal } = this.call;
    const status = this.ended ? "ended" : "running";
    return { session_id, ...shown(command), tty: terminal !== undefined, created_at_ms: this.createdAtMs, attached: this.#audience.size, status };
  }

  /** The command runs: its first client, unless that has gone meanwhile, is told and gets its output. */
  run(command: Interactive, first: Attachment): void {
    this.#command = command;
    // Nobody but this client could know the session.
    if (first.closed) this.#kill({ kind: "limit", reason: "its client went away before it had started" });
    if (this.ended) this.#kill();
    this.#welcome(first, 0);
    this.#follow(command).catch((error: unknown) => this.#events.failed(this, error));
    if (this.#settings.idleMs > 0) this.#watchIdle(this.#settings.idleMs);
    const { timeout_ms } = this.call;
    if (timeout_ms === undefined) return;
    this.#timeout = setTimeout(() => this.#kill({ kind: "timeout", reason: `the command was ended after ${timeout_ms / 1_000} s, its timeout` }), timeout_ms);
  }

  /** The client that starts the session; it hears nothing before `run`. */
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
    clearTimeout(this.#detached);
    this.#audience.add(attachment);
    const former = this.#writer;
    if (!read_only && !this.ended && (takeover || !former)) this.#writer = attachment;
    if (former && this.#writer !== former) former.fail(new SandgateError("conflict", "another client has taken the session over"), "takenOver");
    this.#welcome(attachment, since);
  }

  /** Ends it without an exit code. */
  abort(reason: SandgateError): void {
    this.#lose(reason);
    this.#kill();
  }

  /** Ends its processes as a limit would: the exit code is that of a killed command, the reason goes with it. */
  killFor(reason: string): void {
    this.#kill({ kind: "limit", reason });
  }

  /** The command was given so much of its input. */
  taken(bytes: number): void {
    this.#input.taken += bytes;
    if (this.#input.taken - this.#input.told >= inputAckBytes) this.#tellTaken();
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
    this.#trafficAtMs = Date.now();
    const { accepted, taken } = this.#input;
    if (accepted + bytes.length - taken > inputBytesMax) {
      return from.fail(new SandgateError("rate_limited", `the command has not taken the last ${accepted - taken} bytes of its input`), "inputOverflow");
    }
    this.#input.accepted += bytes.length;
    this.#command?.input.write(bytes);
  }

  closed(attachment: Attachment): void {
    this.#audience.remove(attachment);
    if (this.#writer === attachment) this.#writer = undefined;
    if (this.#audience.size === 0) this.#await();
  }

  #control(message: ClientMessage): void {
    this.#trafficAtMs = Date.now();
    const command = this.#command;
    if (!command || this.ended) return;
    if (message.type === "resize") this.#resize(command, message);
    else if (message.type === "stdin_close") command.input.end();
    else if (message.type === "signal") void command.signal(signalOf(message.signal)).catch(() => {});
    else if (message.type === "kill") this.#kill({ kind: "asked", reason: "its client asked to end it" });
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
    this.#input.told = this.#input.taken;
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

  /** Waits for somebody to attach, then gives up: the command is ended, or its last output is dropped. */
  #await(): void {
    clearTimeout(this.#detached);
    const { detachMs } = this.#settings;
    this.#detached = setTimeout(() => {
      if (this.ended) this.#events.gone(this);
      else this.#kill({ kind: "limit", reason: `nobody was attached for ${detachMs / 1_000} s` });
    }, detachMs);
    if (this.ended) this.#detached.unref();
  }

  #watchIdle(idleMs: number): void {
    const leftMs = this.#trafficAtMs + idleMs - Date.now();
    if (leftMs <= 0) return this.#kill({ kind: "limit", reason: `there was no input and no output for ${idleMs / 1_000} s` });
    this.#idle = setTimeout(() => this.#watchIdle(idleMs), leftMs);
  }

  #kill(stop?: Stop): void {
    this.#stop ??= stop;
    if (!this.#command || this.#killing) return;
    const killed = this.#command.kill().catch((error: unknown) => this.#events.failed(this, error));
    this.#killing = killed.finally(() => this.#audience.takeLast());
  }

  /** To the end of the command and of its output. */
  async #follow(command: Interactive): Promise<void> {
    let exitCode = sigkillExitCode;
    try {
      [exitCode] = await Promise.all([command.exited, ...command.outputs.map((output) => this.#read(output))]);
      // The command itself may be gone before what it started.
      await this.#killing;
      this.#finish(exitCode);
    } catch (error) {
      this.#events.failed(this, error);
      this.#lose(SandgateError.from(error));
    } finally {
      clearTimeout(this.#idle);
      clearTimeout(this.#timeout);
      command.close();
    }
    const { outcome } = this.#audience;
    this.#events.ended(this, outcome?.type === "closed" ? { status: "error", exitCode: -1, error: outcome.message } : this.#endOf(exitCode));
    if (this.#audience.size === 0) this.#await();
  }

  async #read({ channel, reader }: Output): Promise<void> {
    const preview = channel === 1 ? this.stdout : this.stderr;
    for (;;) {
      await this.#audience.untilRoom();
      const chunk = await reader.nextBatch();
      if (!chunk) return;
      this.#trafficAtMs = Date.now();
      preview.add(chunk);
      this.#audience.append(channel, chunk);
    }
  }

  #tellTaken(): void {
    this.#input.told = this.#input.taken;
    this.#writer?.tell({ type: "input_ack", offset: this.#input.taken });
  }

  #endOf(exitCode: number): SessionEnd {
    const isLate = this.#stop?.kind === "timeout";
    return { status: isLate ? "timeout" : "completed", exitCode: isLate ? timeoutExitCode : exitCode, error: this.#stop?.reason };
  }

  #finish(ownExitCode: number): void {
    const { status, exitCode } = this.#endOf(ownExitCode);
    // Whoever asked for the end knows why.
    const reason = this.#stop && this.#stop.kind !== "asked" ? { reason: this.#stop.reason } : {};
    this.#audience.close({ type: "exit", exit_code: exitCode, ...(status === "completed" ? this.#signalOf(exitCode) : {}), ...reason });
  }

  /** The exit code of an interactive shell is that of its last command, so only for a command it tells of a signal. */
  #signalOf(exitCode: number): { signal?: string } {
    const signal = this.call.command !== undefined || this.#killing ? signalOfExitCode(exitCode) : undefined;
    return signal ? { signal } : {};
  }

  #lose({ code, message }: SandgateError): void {
    this.#audience.close({ type: "closed", reason: "sessionLost", code, message });
  }
}

/** A command as lists show it, because many long ones are more than an answer may have: its beginning, and its length where that is not all. */
function shown(command: string | undefined): Pick<SessionSummary, "command" | "command_bytes"> {
  if (command === undefined) return { command: null };
  const bytes = Buffer.from(command);
  const beginning = new Preview();
  beginning.add(bytes);
  return { command: beginning.text, ...(beginning.truncated ? { command_bytes: bytes.length } : {}) };
}

/** @throws {SandgateError} `invalid_request`. */
function signalOf(text: string): NodeJS.Signals {
  const name = signalName(text);
  if (!name) throw new SandgateError("invalid_request", `there is no signal ${text}`);
  return name as NodeJS.Signals;
}
