/** A person who makes API keys, uses them and revokes them. A key that was acknowledged works, and one whose end was acknowledged never again. */
import { Api } from "../helpers/api.ts";
import { type Member, signUp } from "../helpers/members.ts";
import type { History } from "./history.ts";
import type { KeyModel, Models } from "./models.ts";
import { oneOf, type Random } from "./plan.ts";

const client = "keys";
const activeMax = 3;

export class KeyClient {
  readonly #member: Member;
  readonly #history: History;
  readonly #models: Models;
  #made = 0;

  private constructor(member: Member, history: History, models: Models) {
    this.#member = member;
    this.#history = history;
    this.#models = models;
  }

  static async open(url: string, history: History, models: Models): Promise<KeyClient> {
    return new KeyClient(await signUp(url), history, models);
  }

  async step(random: Random): Promise<void> {
    const active = this.#models.keys.filter(({ existence }) => existence === "there");
    const roll = random();
    if (active.length === 0 || (roll < 0.2 && active.length < activeMax)) return this.#make();
    if (roll < 0.4) return this.#revoke(oneOf(random, active) as KeyModel);
    return this.use(oneOf(random, this.#models.keys) as KeyModel);
  }

  /** Asserts of every key what was told. */
  async useAll(): Promise<void> {
    for (const key of this.#models.keys) await this.use(key);
    const told = await this.#asMember<{ data: { name: string; id: string }[] }>("keys", "list the keys", "GET", "/v1/account/keys");
    if (told.kind !== "done") return;
    const known = new Set(this.#models.keys.map(({ id }) => id));
    const strange = told.body.data.filter(({ id, name }) => !known.has(id) && !this.#models.keysMaybe.has(name));
    for (const { name } of strange) this.#history.find("keys", `there is a key ${name} that nobody made`);
  }

  async use({ name, key, existence }: KeyModel): Promise<void> {
    const api = new Api({ url: this.#member.url, apiKey: key });
    const ask = (signal: AbortSignal) => api.call("GET", "/v1/sandboxes/list", undefined, {}, signal);
    const told = await this.#history.call(client, name, "use the key", ask, existence === "there" ? [] : [401]);
    if (told.kind === "done" && existence === "gone") this.#history.find(name, "the key works after its revocation was acknowledged");
  }

  async #make(): Promise<void> {
    const name = `key-${++this.#made}`;
    const told = await this.#asMember<{ id: string; key: string }>(name, "make a key", "POST", "/v1/account/keys", { name });
    if (told.kind === "done") this.#models.keys.push({ name, id: told.body.id, key: told.body.key, existence: "there" });
    else if (told.kind === "unknown") this.#models.keysMaybe.add(name);
  }

  async #revoke(key: KeyModel): Promise<void> {
    const told = await this.#asMember(key.name, "revoke the key", "DELETE", `/v1/account/keys/${key.id}`);
    if (told.kind === "done") key.existence = "gone";
    else if (told.kind === "unknown") key.existence = "maybe";
  }

  #asMember<T = Record<string, unknown>>(subject: string, asked: string, method: string, path: string, body?: object) {
    const { url, headers } = this.#member;
    // A browser has its cookie instead of a key.
    const api = new Api({ url, apiKey: "" });
    return this.#history.call<T>(client, subject, asked, (signal) => api.call<T>(method, path, body, headers, signal));
  }
}
