/** One client: makes calls one after the other, and keeps what it was told of each. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../shared/util/ids.ts";
import { type Answer, type Api, type Chunk, chunksOf, type ExecuteResult } from "../helpers/api.ts";
import type { History, Told } from "./history.ts";
import { type Attempt, Content, type Models, none, type SandboxModel, type SnapshotModel } from "./models.ts";
import { between, type Random } from "./plan.ts";
import { appending } from "./tokens.ts";

const KiB = 1024;
/** How often a client that can repeat a snapshot does so before it does anything else with the sandbox. */
const triesMax = 4;
const pauseMs = 1_000;

export class Client {
  readonly name: string;
  readonly sandboxes: SandboxModel[] = [];
  readonly snapshots: SnapshotModel[] = [];
  readonly #apis: readonly Api[];
  readonly #history: History;
  readonly #models: Models;
  readonly #random: Random;
  #made = 0;
  /** Which gateway was called last, by its place. */
  lastAt = 0;

  constructor(name: string, { apis, history, models, random }: { apis: readonly Api[]; history: History; models: Models; random: Random }) {
    this.name = name;
    this.#apis = apis;
    this.#history = history;
    this.#models = models;
    this.#random = random;
  }

  /** @param waits whether the answer comes when the sandbox runs */
  async create(waits = true): Promise<SandboxModel> {
    const name = this.#newName("s");
    const body = { image: "default", name, resources: { storage: 1, memory: 256 }, network: { access: "none" }, wait_for_ready: waits };
    return this.#makeSandbox({ path: "/v1/sandboxes/create", body, ...this.#onceKey() }, name, new Content());
  }

  async restore(snapshot: SnapshotModel): Promise<SandboxModel> {
    const name = this.#newName("r");
    const path = `/v1/snapshots/${snapshot.id}/restore`;
    return this.#makeSandbox({ path, body: { name }, ...this.#onceKey() }, name, new Content(snapshot.content));
  }

  async execute({ id, name, content }: SandboxModel): Promise<void> {
    const token = this.#newName("t");
    content.tokens.set(token, "at most once");
    const body = { command: appending(token), timeout: 60 };
    const told = await this.#call<ExecuteResult>(name, `execute ${token}`, "POST", `/v1/sandboxes/${id}/execute`, body);
    if (told.kind === "refused") content.tokens.set(token, "never");
    else if (told.kind === "done" && told.body.exit_code === 0) content.tokens.set(token, "once");
  }

  /** Reads numbered lines, which must come in order and without a gap until the stream says how it ended. */
  async stream({ id, name, content }: SandboxModel): Promise<void> {
    const token = this.#newName("t");
    const lines = between(this.#random, 1, 20_000);
    content.tokens.set(token, "at most once");
    let text = "";
    let last: Chunk | undefined;
    const asked = `stream of ${lines} lines ${token}`;
    const told = await this.#history.call<unknown>(this.name, name, asked, async (signal) => {
      const response = await this.#api.stream(id ?? "", `seq 1 ${lines} && ${appending(token)}`, { timeout: 60 }, signal);
      if (response.status !== 200) return { status: response.status, headers: response.headers, body: await response.json() };
      for await (const chunk of chunksOf(response)) {
        last = chunk;
        text += chunk.stdout ?? "";
      }
      if (last?.exit_code === undefined && !last?.error) throw new Error("the stream ended without a word");
      if (last.exit_code !== 0) throw new Error(`the stream ended with ${JSON.stringify(last)}`);
      return { status: 200, headers: response.headers, body: {} };
    });
    const whole = Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join("");
    if (!whole.startsWith(text)) this.#history.find(name, `${asked}: its output is not what was written`);
    if (told.kind === "unknown" && told.why.includes("without a word")) this.#history.find(name, `${asked} ended without an exit code or an error`);
    if (told.kind === "refused") content.tokens.set(token, "never");
    if (told.kind !== "done") return;
    content.tokens.set(token, "once");
    if (text !== whole) this.#history.find(name, `${asked} ended well, but only ${text.length} of ${whole.length} bytes came`);
  }

  async upload({ id, name, content }: SandboxModel): Promise<void> {
    const path = `/root/file-${between(this.#random, 1, 3)}`;
    const bytes = Buffer.alloc(between(this.#random, 0, 4) ** 4 * 8 * KiB + 100, `${this.#newName("f")} `);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const url = `/v1/sandboxes/${id}/upload?path=${path}`;
    const told = await this.#history.call(this.name, name, `upload ${path} ${sha256.slice(0, 8)} of ${bytes.length} bytes`, async (signal) => {
      const response = await this.#api.raw("POST", url, bytes, { "content-type": "application/octet-stream" }, signal);
      return { status: response.status, headers: response.headers, body: (await response.json()) as object };
    });
    if (told.kind !== "refused") content.wrote(path, sha256, told.kind === "done");
  }

  async download({ id, name, content }: SandboxModel): Promise<void> {
    const path = `/root/file-${between(this.#random, 1, 3)}`;
    const possible = content.at(path);
    let sha256 = none;
    const ask = async (signal: AbortSignal): Promise<Answer<object>> => {
      const response = await this.#api.raw("GET", `/v1/sandboxes/${id}/download?path=${path}`, undefined, {}, signal);
      if (response.status !== 200) return { status: response.status, headers: response.headers, body: (await response.json()) as object };
      sha256 = createHash("sha256")
        .update(Buffer.from(await response.arrayBuffer()))
        .digest("hex");
      return { status: 200, headers: response.headers, body: {} };
    };
    const told = await this.#history.call(this.name, name, `download ${path}`, ask, possible.has(none) ? [404] : []);
    const isWrong = told.kind === "done" && !possible.has(sha256);
    if (isWrong)
      this.#history.find(name, `download ${path} brought ${sha256.slice(0, 8)} instead of ${[...possible].map((one) => one.slice(0, 8)).join(" or ")}`);
  }

  async snapshot(source: SandboxModel, quick = false): Promise<SnapshotModel> {
    const name = this.#newName("p");
    const content = new Content(source.content);
    const attempt: Attempt = { path: `/v1/sandboxes/${source.id}/snapshot`, body: { name, quick }, ...this.#onceKey() };
    const snapshot: SnapshotModel = { name, attempt, existence: "maybe", content };
    this.#models.snapshots.push(snapshot);
    for (let tries = 0; tries < triesMax && snapshot.existence === "maybe" && (tries === 0 || attempt.idempotencyKey); tries++) {
      if (tries > 0) await sleep(pauseMs);
      if (await this.make(snapshot)) this.snapshots.push(snapshot);
    }
    return snapshot;
  }

  /** Deletes a sandbox or a snapshot. One that may be gone already is asked for again. */
  async remove(made: SandboxModel | SnapshotModel, kind: "sandbox" | "snapshot"): Promise<void> {
    const path = kind === "sandbox" ? `/v1/sandboxes/${made.id}/delete` : `/v1/snapshots/${made.id}`;
    const told = await this.#call(made.name, `delete the ${kind}`, "DELETE", path, undefined, made.existence === "there" ? [] : [404]);
    if (told.kind === "unknown") made.existence = "maybe";
    else if (told.kind === "done" || told.status === 404) made.existence = "gone";
    if (made.existence === "gone") drop(kind === "sandbox" ? this.sandboxes : this.snapshots, made);
  }

  /** Asks whether something is as it was told. */
  async look(made: SandboxModel | SnapshotModel, kind: "sandbox" | "snapshot"): Promise<void> {
    const path = kind === "sandbox" ? `/v1/sandboxes/${made.id}` : `/v1/snapshots/${made.id}`;
    const told = await this.#call(made.name, `get the ${kind}`, "GET", path, undefined, made.existence === "there" ? [] : [404]);
    if (told.kind === "done" && made.existence === "gone") this.#history.find(made.name, `the ${kind} is there after its deletion was acknowledged`);
  }

  /** Makes something, or makes the call again that should have. @returns whether it is there */
  async make(made: SandboxModel | SnapshotModel, allowed: readonly number[] = []): Promise<boolean> {
    const { path, body, idempotencyKey } = made.attempt;
    const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
    const told = await this.#call<{ id: string }>(made.name, `POST ${path}`, "POST", path, body, allowed, headers);
    if (told.kind === "done") made.id = told.body.id;
    made.existence = told.kind === "done" ? "there" : told.kind === "unknown" ? "maybe" : "gone";
    return told.kind === "done";
  }

  async #makeSandbox(attempt: Attempt, name: string, content: Content): Promise<SandboxModel> {
    const sandbox: SandboxModel = { name, attempt, existence: "maybe", content };
    this.#models.sandboxes.push(sandbox);
    if (await this.make(sandbox)) this.sandboxes.push(sandbox);
    return sandbox;
  }

  #call<T = Record<string, unknown>>(
    subject: string,
    asked: string,
    method: string,
    path: string,
    body?: unknown,
    allowed: readonly number[] = [],
    headers: Record<string, string> = {},
  ): Promise<Told<T>> {
    return this.#history.call<T>(this.name, subject, asked, (signal) => this.#api.call<T>(method, path, body, headers, signal), allowed);
  }

  get #api(): Api {
    this.lastAt = between(this.#random, 0, this.#apis.length - 1);
    return this.#apis[this.lastAt] as Api;
  }

  /** Half of the clients can repeat their calls. */
  #onceKey(): Pick<Attempt, "idempotencyKey"> {
    return this.#random() < 0.5 ? { idempotencyKey: newId("request") } : {};
  }

  #newName(kind: string): string {
    return `${this.name}-${kind}${++this.#made}`;
  }
}

function drop<T>(list: T[], item: unknown): void {
  const index = list.indexOf(item as T);
  if (index >= 0) list.splice(index, 1);
}
