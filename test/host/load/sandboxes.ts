/** Makes sandboxes, runs commands in them and deletes them. */
import { appending, readingTokens, type Times, wrongTokens } from "../../faults/tokens.ts";
import { Caller, type Report } from "./report.ts";

export interface Known {
  readonly name: string;
  /** Of the commands that were to run in it. */
  readonly tokens: Map<string, Times>;
  id?: string;
  deleted: "no" | "told" | "unsure";
}

interface Shown {
  readonly id: string;
  readonly name: string;
}

const keptMax = 4;
const commandsAtOnce = 3;
const prefix = "load-";

export class Sandboxes {
  readonly #report: Report;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #known = new Map<string, Known>();
  readonly #checker: Caller;

  constructor(report: Report, key: string) {
    this.#report = report;
    this.#headers = { "x-api-key": key };
    this.#checker = new Caller(report, "checker");
  }

  /** A sandbox that stays until the end. */
  async keep(name: string): Promise<Known & { readonly id: string }> {
    const made = await this.#make(this.#checker, `${prefix}${name}`, () => false);
    if (!made?.id) throw new Error("no sandbox could be made");
    return made as Known & { readonly id: string };
  }

  /** @param name is unique */
  async client(name: string): Promise<void> {
    const caller = new Caller(this.#report, name);
    const kept: Known[] = [];
    for (let serial = 1; !this.#report.isOver; serial++) {
      const made = await this.#make(caller, `${prefix}${name}-${serial}`, () => this.#report.isOver);
      if (!made) return;
      await Promise.all(Array.from({ length: commandsAtOnce }, (_, index) => this.#use(caller, made, `${made.name}-${index + 1}`)));
      kept.push(made);
      if (kept.length > keptMax / 2) await this.#delete(caller, kept.shift() as Known);
    }
  }

  /** Asks with the same `Idempotency-Key` until the answer is certain. */
  async #make(caller: Caller, name: string, isOver: () => boolean): Promise<Known | undefined> {
    const known: Known = { name, tokens: new Map(), deleted: "no" };
    this.#known.set(name, known);
    const headers = { ...this.#headers, "idempotency-key": name };
    while (!isOver()) {
      const told = await caller.call<Shown>("POST", "/v1/sandboxes/create", [201], {
        headers,
        body: { name, image: "default", resources: { storage: 1 } },
      });
      if (told.is !== "done") continue;
      known.id = told.body.id;
      return known;
    }
    return undefined;
  }

  async #use(caller: Caller, { id, name, tokens }: Known, token: string): Promise<void> {
    tokens.set(token, "at most once");
    const body = { command: `${appending(token)}; echo ${token}`, timeout: 20 };
    const told = await caller.call<{ stdout: string; exit_code: number | null }>("POST", `/v1/sandboxes/${id}/execute`, [200], {
      headers: this.#headers,
      body,
    });
    if (told.is === "refused") tokens.set(token, "never");
    if (told.is !== "done") return;
    if (told.body.stdout !== `${token}\n`) this.#report.fault(`${name} said ${JSON.stringify(told.body)}`);
    else tokens.set(token, "once");
  }

  async #delete(caller: Caller, known: Known): Promise<void> {
    while (!this.#report.isOver) {
      // After an answer that left it open, it may be gone.
      const accepts = known.deleted === "unsure" ? [200, 404] : [200];
      const told = await caller.call("DELETE", `/v1/sandboxes/${known.id}/delete`, accepts, { headers: this.#headers, body: {} });
      known.deleted = told.is === "done" ? "told" : told.is === "unsure" ? "unsure" : known.deleted;
      if (told.is === "done") return;
    }
  }

  /** What is not as clients were told, by each gateway. */
  async verify(): Promise<string[]> {
    const found: string[] = [];
    for (const at of this.#report.gateways) found.push(...(await this.#verifyAt(at)));
    return found;
  }

  /** Deletes all that clients have made. @returns what is still there */
  async clear(): Promise<string[]> {
    const found: string[] = [];
    for (const at of this.#report.gateways) {
      const ours = (await this.#listed(at))?.filter(({ name }) => name.startsWith(prefix));
      if (!ours) found.push(`${at} lists nothing`);
      for (const { id, name } of ours ?? []) {
        await this.#checker.call("DELETE", `/v1/sandboxes/${id}/delete`, [200, 404], { headers: this.#headers, body: {}, at });
        found.push(`${name} is at ${at} when it is to be gone`);
      }
    }
    return found;
  }

  async #listed(at: string): Promise<Shown[] | undefined> {
    const listed = await this.#checker.call<{ data: Shown[] }>("GET", "/v1/sandboxes/list?page_size=100", [200], { headers: this.#headers, at });
    return listed.is === "done" ? listed.body.data : undefined;
  }

  async #verifyAt(at: string): Promise<string[]> {
    const listed = await this.#listed(at);
    if (!listed) return [`${at} lists nothing`];
    const found: string[] = [];
    const byName = new Map<string, Shown[]>();
    for (const shown of listed) byName.set(shown.name, [...(byName.get(shown.name) ?? []), shown]);
    for (const [name, all] of byName) {
      if (all.length > 1) found.push(`${name} exists ${all.length} times at ${at}`);
      if (name.startsWith(prefix) && !this.#known.has(name)) found.push(`${name} was never asked for, and is at ${at}`);
    }
    for (const known of this.#known.values()) {
      const there = byName.get(known.name)?.[0];
      if (known.deleted === "told" && there) found.push(`${known.name} was deleted, and is at ${at}`);
      if (known.id && known.deleted === "no" && there?.id !== known.id) found.push(`${known.name} was made, and is not at ${at}`);
      if (known.id && known.deleted === "no") found.push(...(await this.#verifyTokens(known, at)));
    }
    return found;
  }

  /** Whether each command has run as often as its client was told. */
  async #verifyTokens({ id, name, tokens }: Known, at: string): Promise<string[]> {
    const body = { command: readingTokens, timeout: 20 };
    const told = await this.#checker.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/execute`, [200], { headers: this.#headers, body, at });
    if (told.is !== "done") return [`${name} does not answer at ${at}`];
    return wrongTokens(told.body.stdout, tokens).map((wrong) => `${name} at ${at}: ${wrong}`);
  }
}
