/** Causes one fault after the other, by a seed, and has everything work again before the next. */
import { appendFileSync, globSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FaultPoint, pointsOfCalls } from "../../shared/faults.ts";
import { attempt } from "../../shared/util/attempt.ts";
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
  /** Of the faults with the same one, a run causes one by chance, and the others only if it is asked for more. */
  readonly choice?: string;
}

/** What is killed and stopped. */
interface Target {
  readonly name: string;
  readonly excuses?: readonly number[];
  /** @param onSent is called as soon as the signal was sent */
  readonly kill: Hit;
  readonly stop: Hit;
  /** Resolves when there is something to hit. */
  readonly runs?: (random: Random) => Promise<unknown>;
}
type Hit = (random: Random, span: StopSpan, onSent?: () => void) => Promise<void>;
type Find = (random: Random) => Promise<number | undefined> | number | undefined;

interface StopSpan {
  readonly least: number;
  readonly most: number;
}

/** A moment of a call: a point that the worker reaches, and what leads it there when that is not the call of its name. */
interface Moment {
  readonly name: string;
  readonly point: FaultPoint;
  readonly call?: "restore";
}

const moments: readonly Moment[] = [
  ...pointsOfCalls.map((point) => ({ name: point, point })),
  // Without an image of memory, a restored sandbox is made as a new one is.
  ...(["create.mounted", "create.started"] as const).map((point) => ({ name: `${point} of a restore`, point, call: "restore" as const })),
];

const stopMs = { least: 1_000, most: 15_000 };
/** There are many moments. */
const stopMsAtMoment = { least: 1_000, most: 6_000 };
const awayMsMax = 2_000;
const pointMsMax = 20_000;
const tornBytesMax = 200;
/** How much of what its calls have made stays, so that there is room for more. */
const keptMax = 2;

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
    const { nats, workers, gateways } = this.#stack;
    const targets = [
      ...[nats, ...workers].map((part) => this.#part(part.spec.name, () => part)),
      ...gateways.map((part, index) => this.#part(`gateway ${index + 1}`, () => part)),
      this.#helper(),
      ...Object.entries(this.#othersOfWorker()).map(([name, find]) => ofProcess(name, find)),
    ];
    return [...targets.flatMap((target) => this.#atAnyTime(target)), ...moments.flatMap((moment) => this.#at(moment)), ...this.#ofRecords(), this.#ofStore()];
  }

  #part(name: string, find: () => TestProcess): Target {
    return {
      name,
      kill: (random, _, onSent) => this.#restart(find(), random, onSent),
      stop: (random, span, onSent) => standStill(find().pid, random, span, onSent),
    };
  }

  /** The one whose call is under way. */
  #calledGateway(): Target {
    return this.#part("the gateway", () => this.#stack.gateways[this.#client.lastAt] as TestProcess);
  }

  #helper(): Target {
    return ofProcess("the privileged helper", () => privilegedHelper(this.#stack));
  }

  /** Those that the worker starts, and starts again. */
  #othersOfWorker(): Record<string, Find> {
    const stack = this.#stack;
    return {
      "Podman's service": () => podmanService(stack),
      "the starter of programs": () => programStarter(stack),
      "a container's monitor": async (random) => oneOf(random, await containerMonitors(stack)),
      "an exec server": async (random) => oneOf(random, await execServers(stack)),
    };
  }

  #atAnyTime({ name, kill, stop, excuses = [] }: Target): Fault[] {
    return [
      { name: `kill -9 of ${name}`, excuses, cause: (random) => kill(random, stopMs) },
      { name: `stop of ${name}`, cause: (random) => stop(random, stopMs) },
    ];
  }

  /** The worker dies or stands still then, or something else does. */
  #at(moment: Moment): Fault[] {
    const { name } = moment;
    const { worker } = this.#stack;
    const parts = [this.#part("nats", () => this.#stack.nats), this.#calledGateway(), this.#helper()];
    return [
      {
        name: `kill -9 of worker at ${name}`,
        cause: (random) =>
          this.#reach(
            moment,
            "SIGKILL",
            () => worker.readyLine === undefined,
            () => this.#restart(worker, random),
          ),
      },
      {
        name: `stop of worker at ${name}`,
        cause: (random) =>
          this.#reach(
            moment,
            "SIGSTOP",
            () => isStopped(worker.pid),
            () => standStill(worker.pid, random, stopMs),
          ),
      },
      ...parts.flatMap((part) => this.#ofPartAt(moment, part)),
      {
        name: `kill -9 of another process at ${name}`,
        excuses: [500],
        cause: (random) => this.#meanwhile(moment, (onSent) => this.#killAnother(random, onSent)),
      },
    ];
  }

  #ofPartAt(moment: Moment, { name, excuses = [], kill, stop, runs }: Target): Fault[] {
    const choice = `${name} at ${moment.name}`;
    const caused =
      (hit: Hit): Fault["cause"] =>
      async (random) => {
        await runs?.(random);
        await this.#meanwhile(moment, (onSent) => hit(random, stopMsAtMoment, onSent));
      };
    return [
      { name: `kill -9 of ${choice}`, choice, excuses, cause: caused(kill) },
      { name: `stop of ${choice}`, choice, cause: caused(stop) },
    ];
  }

  async #killAnother(random: Random, onSent: () => void): Promise<void> {
    const [name, find] = oneOf(random, Object.entries(this.#othersOfWorker())) ?? [];
    console.log(`  it is ${name}`);
    killNow(await find?.(random));
    onSent();
  }

  /** Hits something while the worker is there, which stands still only until the signal was sent: it does the rest without what was hit. */
  #meanwhile(moment: Moment, hit: (onSent: () => void) => Promise<void>): Promise<void> {
    const { worker } = this.#stack;
    const goOn = (): void => worker.signal("SIGCONT");
    return this.#reach(
      moment,
      "SIGSTOP",
      () => isStopped(worker.pid),
      () => hit(goOn).finally(goOn),
    );
  }

  /** Makes a call that leads to the point, and does something when the worker is there. */
  async #reach(moment: Moment, signal: NodeJS.Signals, isThere: () => boolean, then: () => Promise<void>): Promise<void> {
    const { point } = moment;
    const call = await this.#callTo(moment);
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
  async #callTo({ point, call }: Moment): Promise<() => Promise<unknown>> {
    const client = this.#client;
    for (const made of client.sandboxes.slice(keptMax)) await client.remove(made, "sandbox");
    for (const made of client.snapshots.slice(keptMax)) await client.remove(made, "snapshot");
    const make = async () => {
      for (const made of client.sandboxes.filter(({ existence }) => existence === "maybe")) await client.remove(made, "sandbox");
      return (
        client.sandboxes[0] ??
        until("a sandbox of the adversary", async () => ((await client.create()).existence === "there" ? client.sandboxes[0] : undefined))
      );
    };
    if (point.startsWith("create.") && call === undefined) return () => client.create();
    const sandbox = await make();
    if (point.startsWith("execute.")) return () => client.execute(sandbox);
    if (point.startsWith("upload.")) return () => client.upload(sandbox);
    if (point.startsWith("snapshot.")) return () => client.snapshot(sandbox);
    if (point.startsWith("remove.")) return () => client.remove(sandbox, "sandbox");
    for (const made of client.snapshots.filter(({ existence }) => existence === "maybe")) await client.remove(made, "snapshot");
    const find = async () => client.snapshots[0] ?? ((await client.snapshot(sandbox)).existence === "there" ? client.snapshots[0] : undefined);
    const snapshot = await until("a snapshot of the adversary", find);
    return call === "restore" ? () => client.restore(snapshot) : () => client.remove(snapshot, "snapshot");
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

  async #restart(part: TestProcess, random: Random, onSent?: () => void): Promise<void> {
    await part.kill9();
    onSent?.();
    await sleep(random() * awayMsMax);
    await part.start();
  }
}

/** A process that is started again by what it works for. */
function ofProcess(name: string, find: Find): Target {
  const found = (random: Random): Promise<number> => until(`${name} runs`, () => find(random));
  return {
    name,
    excuses: [500],
    kill: async (random, _, onSent) => {
      killNow(await found(random));
      onSent?.();
    },
    stop: async (random, span, onSent) => standStill(await found(random), random, span, onSent),
    runs: found,
  };
}

/** Stops a process for a while. */
async function standStill(pid: number, random: Random, { least, most }: StopSpan, onSent?: () => void): Promise<void> {
  const isStopped = attempt(() => process.kill(pid, "SIGSTOP"));
  onSent?.();
  if (!isStopped) return;
  try {
    await sleep(between(random, least, most));
  } finally {
    attempt(() => process.kill(pid, "SIGCONT"));
  }
}

/** It may have ended by itself. */
function killNow(pid: number | undefined): void {
  if (pid !== undefined) attempt(() => process.kill(pid, "SIGKILL"));
}
