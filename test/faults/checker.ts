/** Compares what clients were told with what there is, when everything is calm again. */
import type { Api } from "../helpers/api.ts";
import { temporaryFiles } from "../helpers/resilience.ts";
import { until } from "../helpers/until.ts";
import type { Client } from "./client.ts";
import type { History } from "./history.ts";
import { type Content, type Models, none, type SandboxModel, type SnapshotModel } from "./models.ts";
import { readingTokens, wrongTokens } from "./tokens.ts";
import type { Workload } from "./workload.ts";

const calmMsMax = 120_000;
const restoredMax = 4;
const checksAtOnce = 6;

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

export class Checker {
  readonly #api: Api;
  readonly #history: History;
  readonly #models: Models;
  readonly #workload: Workload;
  readonly #client: Client;

  constructor(api: Api, workload: Workload) {
    this.#api = api;
    this.#workload = workload;
    this.#history = workload.history;
    this.#models = workload.models;
    this.#client = workload.client("checker");
  }

  /** After the workload has ended, and the faults. Adds to the findings of the history. */
  async check(): Promise<void> {
    const { sandboxes, snapshots } = this.#models;
    await inParallel(sandboxes, (sandbox) => this.#settle(sandbox));
    await inParallel(sandboxes, (sandbox) => this.#excuse(sandbox));
    const listed = await this.#calmSandboxes();
    this.#compare("sandbox", sandboxes, listed, "running");
    this.#compare("snapshot", snapshots, await this.#all("/v1/snapshots/list"), "ready");
    await inParallel(sandboxes, async (sandbox) => {
      if (sandbox.existence === "gone" && sandbox.id) await this.#client.look(sandbox, "sandbox");
      if (sandbox.existence === "there") await this.#compareContent(sandbox.name, sandbox.id ?? "", sandbox.content);
    });
    await inParallel(snapshots, async (snapshot) => {
      if (snapshot.existence === "gone" && snapshot.id) await this.#client.look(snapshot, "snapshot");
    });
    await this.#checkRestores(snapshots);
    await this.#workload.keys.useAll();
  }

  /** Removes everything. */
  async clear(): Promise<void> {
    for (const kind of ["sandboxes", "snapshots"]) {
      let errors: { id: string; error: unknown }[] = [];
      await until(
        `no ${kind}`,
        async () => {
          const { status, body } = await this.#api.call<{ errors?: typeof errors }>("DELETE", `/v1/${kind}/delete-all`);
          errors = body.errors ?? [];
          return status === 200 && errors.length === 0;
        },
        calmMsMax,
      ).catch(() => {});
      const all = [...this.#models.sandboxes, ...this.#models.snapshots];
      for (const { id, error } of errors)
        this.#history.find(all.find((made) => made.id === id)?.name ?? kind, `${id} cannot be deleted: ${JSON.stringify(error)}`);
    }
  }

  /**
   * A call that can be repeated is, so that its client knows. What it is to be restored from may have been deleted since. A snapshot
   * that was not taken then cannot be taken now, because its sandbox has gone on.
   */
  async #settle(made: SandboxModel): Promise<void> {
    if (made.existence !== "maybe" || made.id !== undefined || made.attempt.idempotencyKey === undefined) return;
    await this.#client.make(made, [404]);
    if (made.existence === "maybe") this.#history.find(made.name, "cannot be made, though everything is calm");
  }

  /** One that was promised without waiting for it may have failed, if it says so. */
  async #excuse(made: SandboxModel): Promise<void> {
    const { wait_for_ready: waits } = made.attempt.body as { wait_for_ready?: boolean };
    if (waits !== false || made.existence !== "there") return;
    const { status, body } = await this.#api.call<{ status: string; error?: string }>("GET", `/v1/sandboxes/${made.id}`);
    if (status === 200 && body.status === "error" && body.error) made.existence = "maybe";
  }

  /** The sandboxes, when none of them is on its way to be or to be gone. */
  async #calmSandboxes(): Promise<Listed[]> {
    const isCalm = ({ status }: Listed): boolean => status === "running" || status === "error";
    let listed: Listed[] = [];
    await until(
      "no sandbox changes",
      async () => {
        listed = await this.#all("/v1/sandboxes/list");
        return listed.every(isCalm);
      },
      calmMsMax,
    ).catch(() => listed.filter((one) => !isCalm(one)).map(({ name, status }) => this.#history.find(name, `stays ${status}`)));
    return listed;
  }

  #compare(kind: string, models: readonly (SandboxModel | SnapshotModel)[], listed: readonly Listed[], expected: string): void {
    const known = new Map(models.map((made) => [made.name, made]));
    for (const { name } of listed) if (!known.has(name)) this.#history.find(name, `a ${kind} that nobody has asked for`);
    for (const made of models) {
      const found = listed.filter(({ name }) => name === made.name);
      if (found.length > 1) this.#history.find(made.name, `the ${kind} was made ${found.length} times`);
      if (made.existence === "gone" && found.length > 0) this.#history.find(made.name, `the ${kind} is there, though its client was told otherwise`);
      if (made.existence === "there" && found.length === 0) this.#history.find(made.name, `the ${kind} was acknowledged and is lost`);
      for (const { id, status } of found) {
        if (made.id !== undefined && id !== made.id) this.#history.find(made.name, `the ${kind} has the id ${id} instead of ${made.id}`);
        if (status !== expected && made.existence === "there") this.#history.find(made.name, `the ${kind} is ${status}`);
      }
    }
  }

  async #compareContent(name: string, id: string, content: Content): Promise<void> {
    try {
      for (const wrong of wrongTokens(await this.#output(id, readingTokens), content.tokens)) this.#history.find(name, wrong);
      for (const path of content.files.keys()) {
        const sum = (await this.#output(id, `sha256sum ${path} 2>/dev/null || true`)).split(" ")[0] || none;
        if (!content.at(path).has(sum)) {
          this.#history.find(name, `${path} is ${sum.slice(0, 8)} instead of ${[...content.at(path)].map((one) => one.slice(0, 8)).join(" or ")}`);
        }
      }
      const left = await temporaryFiles(this.#api, id);
      if (left.length > 0) this.#history.find(name, `uploads have left ${left.join(", ")}`);
    } catch (error) {
      this.#history.find(name, `cannot be used, though everything is calm: ${error}`);
    }
  }

  /** Restores some of the snapshots: they have what their sandbox had at that time. */
  async #checkRestores(snapshots: readonly SnapshotModel[]): Promise<void> {
    const there = snapshots.filter(({ existence }) => existence === "there");
    for (const snapshot of there.slice(-restoredMax)) {
      const restored = await this.#client.restore(snapshot);
      if (restored.existence === "there") await this.#compareContent(snapshot.name, restored.id ?? "", snapshot.content);
      else this.#history.find(snapshot.name, "cannot be restored, though everything is calm");
    }
  }

  async #output(id: string, command: string): Promise<string> {
    return (await this.#api.execute(id, command)).stdout;
  }

  async #all(path: string): Promise<Listed[]> {
    const all: Listed[] = [];
    for (let page = 1; ; page++) {
      const { status, body } = await this.#api.call<{ data: Listed[]; pagination: { total_pages: number } }>("GET", `${path}?page_size=100&page=${page}`);
      if (status !== 200) throw new Error(`${path} answered ${status}`);
      all.push(...body.data);
      if (page >= body.pagination.total_pages) return all;
    }
  }
}

/** A few at once. */
async function inParallel<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const work = async (): Promise<void> => {
    for (const item of rest) await act(item);
  };
  await Promise.all(Array.from({ length: checksAtOnce }, work));
}
