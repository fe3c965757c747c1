/** Calls, and what was wrong with their answers. */
import { setTimeout as sleep } from "node:timers/promises";
import { oneOf, type Random, randomFor } from "../../faults/plan.ts";

const callMs = 90_000;
const pauseMs = 300;
const verifyMs = 120_000;
/** Answers of a service that says of itself that it cannot do it now. */
const unavailableCodes = ["unavailable", "worker_lost"];

export interface Wanted {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Of the gateway; any when absent. */
  readonly at?: string;
}

/** `unsure`: whether it was done cannot be told from the answer. */
export type Told<T> =
  | { readonly is: "done"; readonly status: number; readonly body: T }
  | { readonly is: "refused"; readonly status: number }
  | { readonly is: "unsure" };

export class Report {
  readonly gateways: readonly string[];
  /** How often each answer came. */
  readonly counts: Record<string, number> = {};
  /** What must not be. */
  readonly faults: string[] = [];
  readonly #isOver: () => boolean;

  constructor(gateways: readonly string[], isOver: () => boolean) {
    this.gateways = gateways;
    this.#isOver = isOver;
  }

  get isOver(): boolean {
    return this.#isOver();
  }

  fault(what: string): void {
    this.faults.push(what);
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  /** Repeats a check until it finds nothing, because news may still be on their way; else what it found last are faults. */
  async verify(what: string, look: () => Promise<string[]>): Promise<void> {
    let found: string[] = [];
    for (const deadline = Date.now() + verifyMs; Date.now() < deadline; await sleep(1_000)) {
      found = await look();
      if (found.length === 0) return this.count(`${what} verified`);
    }
    this.faults.push(...found.slice(0, 20));
  }

  toJSON(): object {
    return { counts: this.counts, faults: this.faults };
  }
}

/** Makes the calls of one client, whose choices the seed gives. */
export class Caller {
  readonly name: string;
  readonly report: Report;
  readonly random: Random;

  constructor(report: Report, name: string) {
    this.name = name;
    this.report = report;
    this.random = randomFor(name);
  }

  /** @param accepts statuses that are answers; everything else must be a 503 that says when to come back */
  async call<T>(method: string, path: string, accepts: readonly number[], { headers = {}, body, at }: Wanted = {}): Promise<Told<T>> {
    const gateway = at ?? oneOf(this.random, this.report.gateways);
    let response: Response;
    let text: string;
    try {
      const sent = { method, headers: { "content-type": "application/json", ...headers }, signal: AbortSignal.timeout(callMs) };
      response = await fetch(`${gateway}${path}`, body ? { ...sent, body: JSON.stringify(body) } : sent);
      text = await response.text();
    } catch (error) {
      // The gateway's machine may be cut off from its clients as well.
      this.report.count(`${(error as Error).name === "TimeoutError" ? "timeout" : "unreachable"}`);
      await sleep(pauseMs);
      return { is: "unsure" };
    }
    this.report.count(String(response.status));
    if (accepts.includes(response.status)) return { is: "done", status: response.status, body: JSON.parse(text) as T };
    return this.#refused(`${method} ${path}`, response, text);
  }

  async #refused(what: string, response: Response, text: string): Promise<Told<never>> {
    const after = Number(response.headers.get("retry-after"));
    const code = (JSON.parse(text) as { error?: { code?: string } }).error?.code ?? "";
    if (response.status !== 429 && (response.status !== 503 || !unavailableCodes.includes(code)))
      this.report.fault(`${what}: ${response.status} ${text.slice(0, 300)}`);
    else if (!(after > 0)) this.report.fault(`${what}: ${response.status} without Retry-After`);
    await sleep(pauseMs);
    return response.status === 503 ? { is: "unsure" } : { is: "refused", status: response.status };
  }
}
