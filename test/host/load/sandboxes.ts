/** Makes sandboxes, runs commands in them and deletes them. */
import type { Report } from "./report.ts";

interface Known {
  readonly name: string;
  id?: string;
  deleted: "no" | "told" | "unsure";
}

interface Shown {
  readonly id: string;
  readonly name: string;
}

const keptMax = 4;
const prefix = "load-";

export class Sandboxes {
  readonly #report: Report;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #known = new Map<string, Known>();
  #made = 0;

  constructor(report: Report, key: string) {
    this.#report = report;
    this.#headers = { "x-api-key": key };
  }

  /** A sandbox that stays. */
  async keep(name: string): Promise<string> {
    const made = await this.#make(name, () => false);
    if (!made?.id) throw new Error("no sandbox could be made");
    return made.id;
  }

  async client(): Promise<void> {
    const kept: Known[] = [];
    while (!this.#report.isOver) {
      const made = await this.#make(`${prefix}${process.pid}-${this.#made++}`, () => this.#report.isOver);
      if (!made) return;
      await this.#use(made);
      kept.push(made);
      if (kept.length > keptMax / 2) await this.#delete(kept.shift() as Known);
    }
  }

  /** Asks with the same `Idempotency-Key` until the answer is certain. */
  async #make(name: string, isOver: () => boolean): Promise<Known | undefined> {
    const known: Known = { name, deleted: "no" };
    this.#known.set(name, known);
    const headers = { ...this.#headers, "idempotency-key": name };
    while (!isOver()) {
      const told = await this.#report.call<Shown>("POST", "/v1/sandboxes/create", [201], {
        headers,
        body: { name, image: "default", resources: { storage: 1 } },
      });
      if (told.is !== "done") continue;
      known.id = told.body.id;
      return known;
    }
    return undefined;
  }

  async #use({ id, name }: Known): Promise<void> {
    const body = { command: `echo ${name} > /root/mark; cat /root/mark`, timeout: 20 };
    const told = await this.#report.call<{ status: string; stdout: string; error?: string }>("POST", `/v1/sandboxes/${id}/execute`, [200], {
      headers: this.#headers,
      body,
    });
    if (told.is === "done" && told.body.stdout !== `${name}\n`) this.#report.fault(`${name} said ${JSON.stringify(told.body)}`);
  }

  async #delete(known: Known): Promise<void> {
    while (!this.#report.isOver) {
      // After an answer that left it open, it may be gone.
      const accepts = known.deleted === "unsure" ? [200, 404] : [200];
      const told = await this.#report.call("DELETE", `/v1/sandboxes/${known.id}/delete`, accepts, { headers: this.#headers, body: {} });
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

  async #verifyAt(at: string): Promise<string[]> {
    const listed = await this.#report.call<{ data: Shown[] }>("GET", "/v1/sandboxes/list?page_size=100", [200], { headers: this.#headers, at });
    if (listed.is !== "done") return [`${at} lists nothing`];
    const found: string[] = [];
    const byName = new Map<string, Shown[]>();
    for (const shown of listed.body.data) byName.set(shown.name, [...(byName.get(shown.name) ?? []), shown]);
    for (const [name, all] of byName) {
      if (all.length > 1) found.push(`${name} exists ${all.length} times at ${at}`);
      if (name.startsWith(prefix) && !this.#known.has(name)) found.push(`${name} was never asked for, and is at ${at}`);
    }
    for (const known of this.#known.values()) {
      const there = byName.get(known.name)?.[0];
      if (known.deleted === "told" && there) found.push(`${known.name} was deleted, and is at ${at}`);
      if (known.id && known.deleted === "no" && there?.id !== known.id) found.push(`${known.name} was made, and is not at ${at}`);
      if (known.id && known.deleted === "no" && known.name !== "streams") found.push(...(await this.#verifyMark(known, at)));
    }
    return found;
  }

  async #verifyMark({ id, name }: Known, at: string): Promise<string[]> {
    const body = { command: "cat /root/mark 2> /dev/null || echo none", timeout: 20 };
    const told = await this.#report.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/execute`, [200], { headers: this.#headers, body, at });
    if (told.is !== "done") return [`${name} does not answer at ${at}`];
    // The command that makes the mark may have been refused.
    return [`${name}\n`, "none\n"].includes(told.body.stdout) ? [] : [`${name} has ${JSON.stringify(told.body.stdout)}`];
  }
}
