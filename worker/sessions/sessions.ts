/** The live sessions of this worker: their limits, lookup and log entries. */

import type { SessionSummary } from "../../shared/bus/contract/sessions.ts";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import type { Counters } from "../counters.ts";
import { boundedCommand, type End, entryOf } from "../log/entry.ts";
import type { Interactive } from "../runtime/container/command.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import type { Store } from "../store/store.ts";
import type { CarriedSession, SessionsForImage } from "./carried.ts";
import { failedEnd } from "./end.ts";
import { Session, type SessionCall } from "./session.ts";

/** Ended sessions per sandbox that are kept for clients that attach again; the oldest go first. */
const endedMax = 32;

/** Session commands started at the same time; further ones wait. */
const startsAtOnce = 8;

interface Parts {
  readonly config: Config;
  readonly hub: StreamHub;
  readonly store: Store;
  readonly log: Logger;
  readonly counters: Counters;
}

interface Kept {
  readonly session: Session;
  readonly sandbox: LiveSandbox;
}

export class Sessions {
  readonly starts = new Semaphore(startsAtOnce);
  readonly #parts: Parts;
  readonly #kept = new Map<string, Kept>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** How many sessions have a running command. */
  get running(): number {
    return [...this.#kept.values()].filter(({ session }) => !session.ended).length;
  }

  /** Opens a session, which counts from now on. @throws {SandgateError} `rate_limited`. */
  open(sandbox: LiveSandbox, call: SessionCall): Session {
    this.#refuseTooMany(call);
    const { config, hub } = this.#parts;
    const settings = { ringBytes: config.sessionRingBytes, idleMs: config.sessionIdleMs, detachMs: Math.min(call.detach_ms, config.sessionDetachMaxMs) };
    const session = new Session(call, hub, settings, {
      ended: (ended, end) => this.#ended(ended, sandbox, end),
      gone: ({ call: { session_id } }) => this.#kept.delete(session_id),
      failed: ({ call: { session_id } }, err) => this.#parts.log.error({ err, session: session_id }, "a session failed"),
    });
    this.#kept.set(call.session_id, { session, sandbox });
    sandbox.activities.add(session);
    return session;
  }

  /** The sessions of a sandbox, for an image of its memory. */
  forImage(sandbox: LiveSandbox): SessionsForImage {
    const all = (): Session[] => [...this.#kept.values()].flatMap((kept) => (kept.sandbox === sandbox ? kept.session : []));
    return {
      hold: async () => (await Promise.all(all().map((session) => session.hold()))).find((reason) => reason !== undefined),
      carried: () => all().flatMap((session) => session.carried() ?? []),
      letGo: () => all().forEach((session) => session.letGo()),
    };
  }

  /**
   * Goes on with the sessions that a sandbox was copied with, as new ones. Those for which there is no room end.
   *
   * @param start takes the command of one over, with its input
   */
  goOn(sandbox: LiveSandbox, carried: readonly CarriedSession[], start: (one: CarriedSession, onTaken: (bytes: number) => void) => Interactive): void {
    for (const one of carried) {
      const { keeper, output, session_id: source, ...rest } = one;
      const { id: sandbox_id, account_id } = sandbox.record;
      const session_id = newId("session");
      const call = { ...rest, session_id, sandbox_id, account_id, request_id: newId("request") };
      let session: Session | undefined;
      const command = start(one, (bytes) => session?.taken(bytes));
      try {
        session = this.open(sandbox, call);
        session.goOn(command, Buffer.from(output, "base64"));
        void this.note(session);
        this.#parts.log.info({ event: "session_copied", session: session_id, source, sandbox: sandbox_id, keeper }, "a session goes on in a copy");
      } catch (err) {
        this.#parts.log.warn({ err, event: "session_not_copied", source, sandbox: sandbox_id }, "a session does not go on in a copy");
        void command.kill().finally(() => command.close());
      }
    }
  }

  /** Forgets a session that could not be started, and logs why. */
  async discard(session: Session, sandbox: LiveSandbox, reason: SandgateError): Promise<void> {
    this.#kept.delete(session.call.session_id);
    sandbox.activities.delete(session);
    await this.note(session, failedEnd(reason.message));
  }

  /** @throws {SandgateError} `not_found`, also for a session of another sandbox. */
  find(sessionId: string, sandboxId: string): Session {
    const kept = this.#kept.get(sessionId);
    if (kept?.session.call.sandbox_id !== sandboxId) {
      throw new SandgateError("not_found", `Session not found: ${sessionId}. It has ended, or its worker was restarted.`, { reason: "no_such_session" });
    }
    return kept.session;
  }

  /** The sessions of a sandbox, newest first. */
  ofSandbox(sandboxId: string): SessionSummary[] {
    const summaries = [...this.#kept.values()].flatMap(({ session }) => (session.call.sandbox_id === sandboxId ? [summaryOf(session)] : []));
    return summaries.reverse();
  }

  /** Writes the session to the execution log. */
  async note(session: Session, end?: End): Promise<void> {
    const { store, log } = this.#parts;
    const { call, createdAtMs: startedAtMs, stdout, stderr } = session;
    const logged = { id: call.session_id, command: call.command ?? loginShell, source: "session", startedAtMs, stdout, stderr } as const;
    await store.log.put(entryOf(call, logged, end)).catch((err) => log.error({ err, session: call.session_id }, "a session could not be logged"));
  }

  #ended(session: Session, sandbox: LiveSandbox, end: End): void {
    sandbox.activities.delete(session);
    void this.note(session, end);
    const ended = [...this.#kept.values()].filter((kept) => kept.sandbox === sandbox && !kept.session.isBusy);
    for (const kept of ended.slice(0, Math.max(0, ended.length - endedMax))) this.#kept.delete(kept.session.call.session_id);
  }

  #refuseTooMany({ sandbox_id, account_id }: SessionCall): void {
    const { config, counters } = this.#parts;
    const { sessionsPerSandbox, sessionsPerAccount } = config;
    const refuse = (words: string): never => {
      counters.refuse("sessions");
      throw new SandgateError("rate_limited", words);
    };
    const busy = [...this.#kept.values()].flatMap(({ session }) => (session.isBusy ? [session.call] : []));
    if (busy.filter((call) => call.sandbox_id === sandbox_id).length >= sessionsPerSandbox) {
      refuse(`the sandbox already has ${sessionsPerSandbox} sessions, which is its limit`);
    }
    if (busy.filter((call) => call.account_id === account_id).length >= sessionsPerAccount) {
      refuse(`the account already has ${sessionsPerAccount} sessions on this worker, which is its limit`);
    }
  }
}

/** Stands for the command of a session without one in the execution log. */
const loginShell = "login shell";

/** A session as lists show it: with only the beginning of a long command, because many of them would not fit into one answer. */
function summaryOf({ call, createdAtMs, clients, ended }: Session): SessionSummary {
  const { session_id, command, terminal } = call;
  const shown = command === undefined ? { command: null } : boundedCommand(command);
  return { session_id, ...shown, tty: terminal !== undefined, created_at_ms: createdAtMs, attached: clients, status: ended ? "ended" : "running" };
}
