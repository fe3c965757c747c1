/** What goes on while faults are caused: a few clients, each with sandboxes and snapshots of its own, and one that makes and revokes keys. */
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "../helpers/api.ts";
import type { Stack } from "../helpers/stack.ts";
import { Client } from "./client.ts";
import { History } from "./history.ts";
import { KeyClient } from "./key-client.ts";
import { Models } from "./models.ts";
import { oneOf, type Random, randomFor } from "./plan.ts";

const sandboxesMax = 3;
const snapshotsMax = 2;
const executionsAtOnce = 3;
const pauseMsMax = 200;
const refusedPauseMs = 2_000;

export class Workload {
  readonly history: History;
  readonly models: Models;
  readonly keys: KeyClient;
  readonly #apis: readonly Api[];
  readonly #running: Promise<void>[] = [];
  #isEnding = false;

  private constructor(parts: { history: History; models: Models; keys: KeyClient; apis: readonly Api[] }) {
    this.history = parts.history;
    this.models = parts.models;
    this.keys = parts.keys;
    this.#apis = parts.apis;
  }

  static async open(stack: Stack): Promise<Workload> {
    const [history, models] = [new History(), new Models()];
    const keys = await KeyClient.open(stack.url, history, models);
    return new Workload({ history, models, keys, apis: stack.urls.map((url) => new Api({ url, apiKey: stack.apiKey })) });
  }

  /** Has this many clients work until the end, beside the one with the keys. */
  begin(clients: number): void {
    for (let index = 1; index <= clients; index++) {
      const [client, random] = [this.client(`c${index}`), randomFor(`steps of client ${index}`)];
      this.#running.push(this.#repeat(random, () => step(client, random)));
    }
    const random = randomFor("keys");
    this.#running.push(this.#repeat(random, () => this.keys.step(random)));
  }

  client(name: string): Client {
    const { history, models } = this;
    return new Client(name, { apis: this.#apis, history, models, random: randomFor(name) });
  }

  /** Resolves when all calls have been answered. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#running);
  }

  async #repeat(random: Random, act: () => Promise<void>): Promise<void> {
    while (!this.#isEnding) {
      await act();
      await sleep(random() * pauseMsMax);
    }
  }
}

/** One thing that a client does next, by what it has. */
async function step(client: Client, random: Random): Promise<void> {
  const sure = client.sandboxes.filter(({ existence }) => existence === "there");
  const unsure = client.sandboxes.find(({ existence }) => existence === "maybe");
  const snapshots = client.snapshots.filter(({ existence }) => existence === "there");
  const [sandbox, snapshot] = [oneOf(random, sure), oneOf(random, snapshots)];
  const roll = random();
  if (unsure && roll < 0.3) return client.remove(unsure, "sandbox");
  if (!sandbox) return createFirst(client);
  const acts: (readonly [share: number, act: (() => Promise<unknown>) | undefined])[] = [
    [4, () => Promise.all(Array.from({ length: 1 + Math.floor(roll * executionsAtOnce) }, () => client.execute(sandbox)))],
    [2, () => client.stream(sandbox)],
    [2, () => client.upload(sandbox)],
    [2, () => client.download(sandbox)],
    [1, () => client.look(sandbox, "sandbox")],
    [1, sure.length < sandboxesMax ? () => client.create(roll < 0.8) : undefined],
    [1, snapshots.length < snapshotsMax ? () => client.snapshot(sandbox, roll < 0.3) : undefined],
    [1, snapshot && sure.length < sandboxesMax ? () => client.restore(snapshot) : undefined],
    [1, snapshot && (() => client.remove(snapshot, "snapshot"))],
    [1, sure.length > 1 ? () => client.remove(sandbox, "sandbox") : undefined],
  ];
  await oneOf(
    random,
    acts.flatMap(([share, act]) => (act ? Array.from({ length: share }, () => act) : [])),
  )?.();
}

/** A client that gets none waits before it asks again. */
async function createFirst(client: Client): Promise<void> {
  if ((await client.create()).existence !== "there") await sleep(refusedPauseMs);
}
