/** Clients work while faults are caused; at the end, what they were told is compared with what there is. */
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Api } from "../helpers/api.ts";
import type { Stack } from "../helpers/stack.ts";
import { until } from "../helpers/until.ts";
import type { Fault } from "./adversary.ts";
import { Checker } from "./checker.ts";
import type { Client } from "./client.ts";
import { assertMemoryAsBefore, assertNoRecords, findLeftovers, type Inventory, inventoryOf, memoryOf } from "./inventory.ts";
import { plan, randomFor, shuffled } from "./plan.ts";
import { assertNoFindings, printTable } from "./report.ts";
import { Workload } from "./workload.ts";

const clients = 4;
const pauseMsMax = 1_000;
const readyMsMax = 90_000;

interface Trial {
  readonly title: string;
  /** Each is caused once, in random order, but of those with one `choice` only one; or as many as the run was asked for. @param client makes the calls of faults */
  readonly faults: (client: Client) => readonly Fault[];
  /** How many containers wait to become sandboxes while nothing is asked for; none when absent. */
  readonly waiting?: number;
  /** What each part may have grown by at the end; 150 MiB when absent. */
  readonly growthBytesMax?: number;
}

export async function endure(stack: Stack, { title, faults, waiting = 0, growthBytesMax }: Trial): Promise<void> {
  const api = new Api(stack);
  await api.delete(await api.create());
  const before = await settled(stack, waiting);
  const memory = memoryOf(stack);
  const workload = await Workload.open(stack);
  const { history } = workload;
  workload.begin(clients);
  try {
    await causeAll(stack, workload, chosen(title, faults(workload.client("adversary"))));
    await workload.end();
    await allReady(stack);
    const checker = new Checker(api, workload);
    await checker.check();
    await checker.clear();
    await findLeftovers(stack, before, workload);
  } finally {
    await workload.end();
    printTable(title, history);
  }
  assertNoFindings(history);
  assertMemoryAsBefore(stack, memory, growthBytesMax);
  await Promise.all(stack.workers.map((worker) => worker.stop()));
  await assertNoRecords(stack);
}

/** What is there once so many containers wait, and nothing changes any more. */
async function settled(stack: Stack, waiting: number): Promise<Inventory> {
  let last: Inventory = {};
  await until(`${waiting} containers wait`, async () => {
    const now = await inventoryOf(stack);
    const isSame = isDeepStrictEqual(now, last);
    last = now;
    return isSame && now.containers?.length === waiting;
  });
  return last;
}

/** One of each choice, or as many as the run was asked for: then the other ones too, and then all again. */
function chosen(title: string, all: readonly Fault[]): Fault[] {
  const random = randomFor(title);
  const order = shuffled(random, all);
  const isFirst = ({ choice }: Fault, index: number): boolean => choice === undefined || order.findIndex((other) => other.choice === choice) === index;
  const first = order.filter(isFirst);
  const chosen = [...first, ...order.filter((fault) => !first.includes(fault))];
  const rounds = plan.rounds ?? first.length;
  while (chosen.length < rounds) chosen.push(...shuffled(random, all));
  return chosen.slice(0, rounds);
}

async function causeAll(stack: Stack, { history }: Workload, faults: readonly Fault[]): Promise<void> {
  for (const [index, fault] of faults.entries()) {
    const { name, cause } = fault;
    // Its own numbers, so that one fault can be left out without changing the others.
    const random = randomFor(`${index} ${name}`);
    console.log(`${(history.nowMs / 1_000).toFixed(1)} s: ${name}`);
    await history.during(fault, async () => {
      await cause(random);
      await allReady(stack);
    });
    await sleep(random() * pauseMsMax);
  }
}

/** Resolves when every gateway says that calls can be carried out; else says what the parts have said last. */
async function allReady({ urls, nats, workers, gateways }: Stack): Promise<void> {
  for (const url of urls) {
    await until(`${url} is ready`, async () => (await fetch(`${url}/readyz`)).ok, readyMsMax).catch((error: unknown) => {
      const parts = [nats, ...workers, ...gateways];
      const said = parts.map(({ spec, readyLine, lines }) => `${spec.name} ${readyLine ? "runs" : "has ended"}: ${lines.slice(-3).join("\n  ")}`);
      throw new Error(`${error}\n${said.join("\n")}`);
    });
  }
}
