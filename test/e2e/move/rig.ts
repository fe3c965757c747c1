/** Two workers and two gateways, and one sandbox that moves between the workers. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SandboxEntry } from "../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../shared/bus/kv.ts";
import { buckets } from "../../../shared/bus/subjects.ts";
import type { FaultPoint } from "../../../shared/faults.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { type Answer, Api } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { expectOk } from "../../helpers/expect.ts";
import { hostState } from "../../helpers/host-state.ts";
import type { TestProcess } from "../../helpers/process.ts";
import { plain } from "../../helpers/resilience.ts";
import { type Stack, startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

/** Longer than it takes until a gateway that is gone counts as such and workers have asked another one. */
const settledMs = 90_000;

/** Both workers have the image. */
const lean = { SANDGATE_SNAPSHOT_ARCHIVE_IMAGES: "false" };

export interface AdminSandbox {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly worker_id: string;
  readonly created_at: string;
}

export class MoveRig implements AsyncDisposable {
  readonly stack: Stack;
  readonly api: Api;
  readonly #faults: string;

  private constructor(stack: Stack, faults: string) {
    this.stack = stack;
    this.api = new Api(stack);
    this.#faults = faults;
  }

  static async open(name: string, settings: Readonly<Record<string, string>> = {}): Promise<MoveRig> {
    const faults = join(mkdtempSync(join(tmpdir(), `sandgate-${name}-faults-`)), "point");
    chmodSync(dirname(faults), 0o755);
    const stack = await startStack({ name, workers: 2, gateways: 2, settings: { ...plain, ...lean, SANDGATE_TEST_FAULT: faults, ...settings } });
    const rig = new MoveRig(stack, faults);
    await rig.bothWorkers();
    return rig;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack[Symbol.asyncDispose]();
    rmSync(dirname(this.#faults), { recursive: true });
  }

  /** Resolves when both gateways know both workers. */
  async bothWorkers(): Promise<void> {
    for (const url of this.stack.urls) {
      const api = new Api({ url, apiKey: this.stack.apiKey });
      const present = async () => expectOk(await api.call<{ data: { present: boolean }[] }>("GET", "/v1/admin/workers")).data.filter((one) => one.present);
      await until("both workers", async () => (await present()).length === 2, settledMs);
    }
  }

  async all(url = this.stack.url): Promise<AdminSandbox[]> {
    const api = new Api({ url, apiKey: this.stack.apiKey });
    return expectOk(await api.call<{ data: AdminSandbox[] }>("GET", "/v1/admin/sandboxes?page_size=100")).data;
  }

  async ownerOf(id: string): Promise<string> {
    return (await this.all()).find((one) => one.id === id)?.worker_id ?? assert.fail("no such sandbox");
  }

  processOf(workerId: string): TestProcess {
    return this.stack.workers.find(({ spec }) => spec.env.SANDGATE_WORKER_ID === workerId) ?? assert.fail("no such worker");
  }

  otherThan(workerId: string): string {
    return this.stack.workers.map(({ spec }) => spec.env.SANDGATE_WORKER_ID).find((id) => id !== workerId) ?? assert.fail("no other worker");
  }

  move(id: string, body: object = {}): Promise<Answer> {
    return this.api.call("POST", `/v1/admin/sandboxes/${id}/move`, body);
  }

  /** Makes a call during which a worker dies or stops at this point. @param meanwhile what is done then */
  async interrupted(point: FaultPoint, signal: "SIGKILL" | "SIGSTOP", call: () => Promise<Answer>, meanwhile: () => Promise<void>): Promise<void> {
    writeFileSync(this.#faults, `${point} ${signal}`);
    const calling = call().catch(() => undefined);
    try {
      await until(`a worker is at ${point}`, () => this.stack.workers.some((worker) => isOut(worker)));
    } finally {
      rmSync(this.#faults);
    }
    await meanwhile();
    await calling;
  }

  /** Starts what does not run, and lets go on what stands. */
  async repair(): Promise<void> {
    for (const worker of this.stack.workers) if (isOut(worker)) await (worker.readyLine && !isGone(worker) ? worker.signal("SIGCONT") : worker.start());
    await this.bothWorkers();
  }

  /** Asserts that exactly one worker has the sandbox, that it can be used, and that nothing is left of the move anywhere. @returns whose it is */
  async settled(id: string): Promise<string> {
    await until("it can be used", async () => (await this.api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status === 200, settledMs);
    const entries = async (): Promise<SandboxEntry[]> => (await this.#entries()).filter((entry) => entry.id === id);
    await until(
      "one entry, of one worker",
      async () => (await entries()).map(({ status, move, moved_to }) => `${status} ${move?.id ?? ""}${moved_to ?? ""}`).join() === "running ",
      settledMs,
    );
    const owner = await this.ownerOf(id);
    assert.equal((await entries())[0]?.worker_id, owner);
    for (const url of this.stack.urls)
      assert.deepEqual(
        (await this.all(url)).filter((one) => one.id === id).map((one) => one.worker_id),
        [owner],
      );
    await until(
      "one container",
      async () =>
        (await this.stack.containers())
          .filter(({ sandboxId }) => sandboxId === id)
          .map(({ running }) => running)
          .join() === "true",
      settledMs,
    );
    const other = this.processOf(this.otherThan(owner));
    await until("nothing is left where it is not", () => !hostState(other).roots.includes(id), settledMs);
    return owner;
  }

  /** The entries of all workers, as they are stored. */
  async #entries(): Promise<SandboxEntry[]> {
    await using bus = await connectBus(this.stack.natsUrl, "test-moves");
    const bucket = await BucketWriter.open(bus, buckets.sandboxes, checker(SandboxEntry));
    const found = await Promise.all((await bucket.keys()).map((key) => bucket.read(key)));
    return found.filter((entry) => entry !== undefined);
  }
}

/** Whether a process is gone, or stands still. */
const isOut = (worker: TestProcess): boolean => isGone(worker) || /^State:\s+T/m.test(statusOf(worker) ?? "");

const isGone = (worker: TestProcess): boolean => {
  const status = statusOf(worker);
  return status === undefined || /^State:\s+Z/m.test(status);
};

function statusOf({ pid }: TestProcess): string | undefined {
  return existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, "utf8") : undefined;
}
