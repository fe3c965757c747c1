/** Causes one fault after the other, by a seed, and has everything work again before the next. */
import { appendFileSync, globSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { attempt } from "../../shared/util/attempt.ts";
import { type FaultPoint, pointsOfCalls } from "../../worker/faults.ts";
import { isStopped } from "../../worker/runtime/process/proc.ts";
import { containerMonitors, execServers, podmanService, privilegedHelper, programStarter } from "../helpers/part-processes.ts";
import type { TestProcess } from "../helpers/process.ts";
import type { Stack } from "../helpers/stack.ts";
import { until } from "../helpers/until.ts";
import type { Client } from "./client.ts";
import type { Cause } from "./history.ts";
import { between, oneOf, type Random } from "./plan.ts";

/** Resolves when the fault is over and what it has ended runs again. */
export interface Fault extends Cause {
  readonly cause: (random: Random) => Promise<void>;
}

const stopMs = { least: 1_000, most: 15_000 };
const awayMsMax = 2_000;
const pointMsMax = 20_000;
const tornBytesMax = 200;

export class Adversary {
  readonly #stack: Stack;
  /** Makes the calls that lead the worker to a point. */
  readonly #client: Client;
  /** The file that names the point. */
  readonly #points: string;

  constructor(stack: Stack, client: Client, points: string) {
    this.#stack = stack;
    this.#client = client;
    this.#points = points;
  }

  /** Every fault that it can cause. */
  faults(): Fault[] {
    const parts = [this.#stack.nats, ...this.#stack.workers, ...this.#stack.gateways].flatMap((part, index) => this.#ofPart(part, index));
    const others = Object.entries(this.#processes()).flatMap(([name, find]) => this.#ofProcess(name, find));
    return [...parts, ...others, ...pointsOfCalls.flatMap((point) => this.#atPoint(point)), ...this.#ofRecords(), this.#ofStore()];
  }

  #ofPart(part: TestProcess, index: number): Fault[] {
    const name = part.spec.name === "gateway" ? `gateway ${index - 1}` : part.spec.name;
    return [
      { name: `kill -9 of ${name}`, cause: (random) => this.#restart(part, random) },
      { name: `stop of ${name}`, cause: (random) => standStill(part.pid, random) },
    ];
  }

  /** Those that a part starts, and starts again. */
  #processes(): Record<string, (random: Random) => Promise<number | undefined> | number | undefined> {
    const stack = this.#stack;
    return {
      "Podman's service": () => podmanService(stack),
      "the privileged helper": () => privilegedHelper(stack),
      "the starter of programs": () => programStarter(stack),
      "a container's monitor": async (random) => oneOf(random, await containerMonitors(stack)),
      "an exec server": async (random) => oneOf(random, await execServers(stack)),
    };
  }

  #ofProcess(name: string, find: (random: Random) => Promise<number | undefined> | number | undefined): Fault[] {
    const found = (random: Random): Promise<number> => until(`${name} runs`, () => find(random));
    return [
      { name: `kill -9 of ${name}`, excuses: [500], cause: async (random) => killNow(await found(random)) },
      { name: `stop of ${name}`, cause: async (random) => standStill(await found(random), random) },
    ];
  }

  /** The worker dies there; it stands still there; another part dies while it stands still there. */
  #atPoint(point: FaultPoint): Fault[] {
    const { worker } = this.#stack;
    return [
      {
        name: `kill -9 of worker at ${point}`,
        cause: (random) =>
          this.#reach(
            point,
            "SIGKILL",
            () => worker.readyLine === undefined,
            () => this.#restart(worker, random),
          ),
      },
      {
        name: `stop of worker at ${point}`,
        cause: (random) =>
          this.#reach(
            point,
            "SIGSTOP",
            () => isStopped(worker.pid),
            () => standStill(worker.pid, random),
          ),
      },
      {
        name: `kill -9 of another part at ${point}`,
        excuses: [500],
        cause: (random) =>
          this.#reach(
            point,
            "SIGSTOP",
            () => isStopped(worker.pid),
            () => this.#killAnother(random),
          ),
      },
    ];
  }

  async #killAnother(random: Random): Promise<void> {
    const { nats, gateways, worker } = this.#stack;
    const parts = [nats, ...gateways].map((part) => [part.spec.name, () => this.#restart(part, random)] as const);
    const others = Object.entries(this.#processes()).map(([name, find]) => [name, async () => killNow(await find(random))] as const);
    const [name, kill] = oneOf(random, [...parts, ...others]) ?? [];
    console.log(`  it is ${name}`);
    try {
      await kill?.();
    } finally {
      worker.signal("SIGCONT");
    }
  }

  /** Makes a call that leads to the point, and does something when the worker is there. */
  async #reach(point: FaultPoint, signal: NodeJS.Signals, isThere: () => boolean, then: () => Promise<void>): Promise<void> {
    const call = await this.#callTo(point);
    writeFileSync(this.#points, `${point} ${signal}`);
    const called = call();
    try {
      await until(`the worker is at ${point}`, isThere, pointMsMax);
    } finally {
      rmSync(this.#points);
    }
    await then();
    await called;
  }

  /** Prepares what the call needs. */
  async #callTo(point: FaultPoint): Promise<() => Promise<unknown>> {
    const client = this.#client;
    const make = async () => {
      for (const made of client.sandboxes.filter(({ existence }) => existence === "maybe")) await client.remove(made, "sandbox");
      return (
        client.sandboxes[0] ??
        until("a sandbox of the adversary", async () => ((await client.create()).existence === "there" ? client.sandboxes[0] : undefined))
      );
    };
    if (point.startsWith("create.")) return () => client.create();
    const sandbox = await make();
    if (point.startsWith("execute.")) return () => client.execute(sandbox);
    if (point.startsWith("upload.")) return () => client.upload(sandbox);
    if (point.startsWith("snapshot.")) return () => client.snapshot(sandbox);
    if (point.startsWith("remove.")) return () => client.remove(sandbox, "sandbox");
    for (const made of client.snapshots.filter(({ existence }) => existence === "maybe")) await client.remove(made, "snapshot");
    const find = async () => client.snapshots[0] ?? ((await client.snapshot(sandbox)).existence === "there" ? client.snapshots[0] : undefined);
    const snapshot = await until("a snapshot of the adversary", find);
    return () => client.remove(snapshot, "snapshot");
  }

  /** The worker's records, damaged while it is down. */
  #ofRecords(): Fault[] {
    const { worker } = this.#stack;
    const file = join(worker.spec.env.SANDGATE_DATA_DIR ?? "", "worker/lmdb/data.mdb");
    const cut =
      (bytes: (random: Random) => number): Fault["cause"] =>
      async (random) => {
        await worker.kill9();
        truncateSync(file, bytes(random));
        await worker.start();
      };
    return [
      { name: "records cut anywhere", cause: cut((random) => Math.floor(statSync(file).size * random())) },
      { name: "records cut to nothing", cause: cut(() => 100) },
    ];
  }

  /** JetStream's files, as a power cut leaves them where it met the server while it wrote. */
  #ofStore(): Fault {
    const { nats, instance } = this.#stack;
    return {
      name: "torn ends of JetStream's files",
      cause: async (random) => {
        await nats.kill9();
        const ends = new Map<string, number>();
        for (const file of globSync(join(instance.paths.nats, "jetstream/*/streams/*/msgs/*.blk"))) {
          ends.set(dirname(file), Math.max(ends.get(dirname(file)) ?? 0, Number.parseInt(basename(file), 10)));
        }
        for (const [dir, last] of ends) appendFileSync(join(dir, `${last}.blk`), Buffer.alloc(between(random, 1, tornBytesMax), between(random, 0, 255)));
        await nats.start();
      },
    };
  }

  async #restart(part: TestProcess, random: Random): Promise<void> {
    await part.kill9();
    await sleep(random() * awayMsMax);
    await part.start();
  }
}

/** Stops a process for a while. */
async function standStill(pid: number, random: Random): Promise<void> {
  if (!attempt(() => process.kill(pid, "SIGSTOP"))) return;
  try {
    await sleep(between(random, stopMs.least, stopMs.most));
  } finally {
    attempt(() => process.kill(pid, "SIGCONT"));
  }
}

/** It may have ended by itself. */
function killNow(pid: number | undefined): void {
  if (pid !== undefined) attempt(() => process.kill(pid, "SIGKILL"));
}
