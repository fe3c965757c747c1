/** What clients asked, what they were told, and which fault went on meanwhile: the record that everything is compared with at the end. */
import type { Answer } from "../helpers/api.ts";

/**
 * What a client knows after a call. `done`: it was told so. `refused`: nothing has happened, and the answer says why. `unknown`:
 * it may have happened.
 */
export type Told<T = Record<string, unknown>> =
  | { readonly kind: "done"; readonly status: number; readonly body: T }
  | { readonly kind: "refused"; readonly status: number; readonly code: string }
  | { readonly kind: "unknown"; readonly status: number | undefined; readonly why: string };

interface Entry {
  readonly serial: number;
  readonly client: string;
  /** What the call is about, by name. */
  readonly subject: string;
  readonly asked: string;
  readonly told: string;
  readonly answer: string;
  readonly askedMs: number;
  readonly toldMs: number;
  /** The faults during which it was under way. */
  readonly during: readonly string[];
}

/** Something that must not be, and what it is about. */
export interface Finding {
  readonly subject: string;
  readonly what: string;
}

/** What is done to the installation. */
export interface Cause {
  readonly name: string;
  /** Errors that calls may get because of it which are defects otherwise: those that were being carried out by what is killed. */
  readonly excuses?: readonly number[];
}

/** A time during which a fault lasted, until everything worked again. */
interface Span extends Cause {
  readonly fromMs: number;
  toMs: number;
}

/** No call may take longer: every wait of the product ends before. */
export const callMsMax = 150_000;
const shownMax = 25;
/** What is told to a client that may try again, or that was too late; all other refusals have to be expected by the call. */
const alwaysAllowed = [409, 429, 503, 507];

export class History {
  readonly #beganMs = performance.now();
  readonly #entries: Entry[] = [];
  readonly #spans: Span[] = [];
  readonly findings: Finding[] = [];

  /** Records a call. @param allowed statuses of refusals that this call may get, beside those that any may get */
  async call<T>(
    client: string,
    subject: string,
    asked: string,
    make: (signal: AbortSignal) => Promise<Answer<T>>,
    allowed: readonly number[] = [],
  ): Promise<Told<T>> {
    const askedMs = this.#now();
    const told = await make(AbortSignal.timeout(callMsMax)).then(toldBy, brokenBy<T>);
    this.#note(client, subject, asked, told, askedMs);
    const { status } = told;
    const excused = this.#spansSince(askedMs).flatMap(({ excuses = [] }) => excuses);
    if (told.kind === "unknown" && told.why.includes("TimeoutError")) this.find(subject, `${asked} got no answer in ${callMsMax / 1_000} s`);
    if (status !== undefined && status >= 400 && ![...alwaysAllowed, ...allowed, ...excused].includes(status)) {
      this.find(subject, `${asked} was told ${describe(told)}`);
    }
    return told;
  }

  #note(client: string, subject: string, asked: string, told: Told<unknown>, askedMs: number): void {
    const toldMs = this.#now();
    const during = this.#spansSince(askedMs).map(({ name }) => name);
    const answer = told.status === undefined ? "broken off" : String(told.status);
    this.#entries.push({ serial: this.#entries.length, client, subject, asked, told: describe(told), answer, askedMs, toldMs, during });
  }

  find(subject: string, what: string): void {
    this.findings.push({ subject, what });
  }

  /** Milliseconds since the beginning. */
  get nowMs(): number {
    return this.#now();
  }

  #spansSince(askedMs: number): Span[] {
    return this.#spans.filter(({ toMs }) => toMs >= askedMs);
  }

  /** Notes how long a fault and what follows from it lasts. */
  async during<T>(cause: Cause, act: () => Promise<T>): Promise<T> {
    const span: Span = { ...cause, fromMs: this.#now(), toMs: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    try {
      return await act();
    } finally {
      span.toMs = this.#now();
    }
  }

  get calls(): number {
    return this.#entries.length;
  }

  /** One line for each fault: how often it was caused, and what clients were answered meanwhile. */
  table(): { fault: string; times: number; answers: string; verdict: string }[] {
    const faults = [...new Set(this.#spans.map(({ name }) => name))].sort();
    return faults.map((fault) => {
      const met = this.#entries.filter(({ during }) => during.includes(fault));
      const counts = new Map<string, number>();
      for (const { answer } of met) counts.set(answer, (counts.get(answer) ?? 0) + 1);
      const answers = [...counts].sort().map(([answer, count]) => `${answer}: ${count}`);
      const subjects = new Set(met.map(({ subject }) => subject));
      const found = this.findings.some(({ subject }) => subjects.has(subject));
      return {
        fault,
        times: this.#spans.filter(({ name }) => name === fault).length,
        answers: answers.join(", ") || "no calls",
        verdict: found ? "see findings" : "held",
      };
    });
  }

  /** The last calls about something, for a message of failure. */
  about(subject: string): string {
    const all = this.#entries.filter((entry) => entry.subject === subject);
    const seconds = (ms: number): string => (ms / 1_000).toFixed(2);
    return all
      .slice(-shownMax)
      .map(
        ({ client, asked, told, askedMs, toldMs, during }) =>
          `    ${seconds(askedMs)}-${seconds(toldMs)} s ${client}: ${asked} -> ${told} [${during.join("; ")}]`,
      )
      .join("\n");
  }

  #now(): number {
    return performance.now() - this.#beganMs;
  }
}

function toldBy<T>({ status, body }: Answer<T>): Told<T> {
  if (status < 400) return { kind: "done", status, body };
  const code = (body as { error?: { code?: string; message?: string } }).error;
  const why = `${code?.code}: ${code?.message}`;
  // Whoever cannot be reached may have carried the call out all the same.
  return status === 503 || status === 500 ? { kind: "unknown", status, why } : { kind: "refused", status, code: why };
}

function brokenBy<T>(error: unknown): Told<T> {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return { kind: "unknown", status: undefined, why: `${error}${cause}` };
}

function describe(told: Told<unknown>): string {
  if (told.kind === "done") return String(told.status);
  return told.kind === "refused" ? `${told.status} ${told.code}` : `${told.status ?? "broken off"} ${told.why}`;
}
