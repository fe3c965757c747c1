import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { KeyedMutex, Semaphore, SingleFlight } from "../../../../shared/util/mutex.ts";

/** A task that runs until it is let go. */
function held(log: string[], name: string): { task: () => Promise<string>; go: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const task = async (): Promise<string> => {
    log.push(`${name} begins`);
    await promise;
    log.push(`${name} ends`);
    return name;
  };
  return { task, go: resolve };
}

test("tasks of one key run one after another, in order", async () => {
  const [mutex, log]: [KeyedMutex, string[]] = [new KeyedMutex(), []];
  const [a, b] = [held(log, "a"), held(log, "b")];
  const both = Promise.all([mutex.run("key", a.task), mutex.run("key", b.task)]);
  await turn();
  b.go();
  await turn();
  assert.deepEqual(log, ["a begins"]);
  a.go();
  assert.deepEqual(await both, ["a", "b"]);
  assert.deepEqual(log, ["a begins", "a ends", "b begins", "b ends"]);
});

test("tasks of different keys run side by side", async () => {
  const [mutex, log]: [KeyedMutex, string[]] = [new KeyedMutex(), []];
  const [a, b] = [held(log, "a"), held(log, "b")];
  const both = Promise.all([mutex.run("one", a.task), mutex.run("two", b.task)]);
  await turn();
  assert.deepEqual(log, ["a begins", "b begins"]);
  a.go();
  b.go();
  await both;
});

test("a task that fails fails for its caller only; the next one runs", async () => {
  const mutex = new KeyedMutex();
  const failing = mutex.run("key", async () => Promise.reject(new Error("no")));
  const next = mutex.run("key", async () => "done");
  await assert.rejects(failing, /no/);
  assert.equal(await next, "done");
});

test("a semaphore lets in as many as it has permits, then one for each that leaves, first come first served", async () => {
  const [semaphore, log]: [Semaphore, string[]] = [new Semaphore(2), []];
  const tasks = ["a", "b", "c", "d"].map((name) => held(log, name));
  const all = Promise.all(tasks.map(({ task }) => semaphore.run(task)));
  await turn();
  assert.deepEqual(log, ["a begins", "b begins"]);
  tasks[1]?.go();
  await turn();
  assert.deepEqual(log.slice(2), ["b ends", "c begins"]);
  for (const { go } of tasks) go();
  await all;
});

test("a large request at the head of the line is not overtaken by small ones", async () => {
  const semaphore = new Semaphore(10);
  const first = await semaphore.acquire(6);
  const order: string[] = [];
  const enter = async (name: string, amount: number): Promise<void> => {
    await semaphore.acquire(amount);
    order.push(name);
  };
  const both = [enter("large", 8), enter("small", 1)];
  await turn();
  assert.deepEqual(order, []);
  first();
  await Promise.all(both);
  assert.deepEqual(order, ["large", "small"]);
});

test("releasing twice gives one permit back", async () => {
  const semaphore = new Semaphore(1);
  const release = await semaphore.acquire();
  release();
  release();
  await semaphore.acquire();
  let second = false;
  void semaphore.acquire().then(() => {
    second = true;
  });
  await turn();
  assert.equal(second, false);
});

test("a permit comes back when a task fails", async () => {
  const semaphore = new Semaphore(1);
  await assert.rejects(semaphore.run(async () => Promise.reject(new Error("no"))));
  assert.equal(await semaphore.run(async () => "in"), "in");
});

test("callers of the same key share one flight; the next one starts after it", async () => {
  const flights = new SingleFlight<number>();
  let started = 0;
  const task = async (): Promise<number> => {
    const mine = ++started;
    await turn();
    return mine;
  };
  assert.deepEqual(await Promise.all([flights.run("a", task), flights.run("a", task), flights.run("b", task)]), [1, 1, 2]);
  assert.equal(await flights.run("a", task), 3);
});

test("a failed flight fails for all who shared it and is not remembered", async () => {
  const flights = new SingleFlight<string>();
  const failing = (): Promise<string> => turn().then(() => Promise.reject(new Error("no")));
  const results = await Promise.allSettled([flights.run("a", failing), flights.run("a", failing)]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  assert.equal(await flights.run("a", async () => "yes"), "yes");
});
