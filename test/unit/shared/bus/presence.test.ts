/** Heartbeats over a real nats-server. */
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { afterEach, beforeEach, test } from "node:test";
import { answer, ask } from "../../../../shared/bus/calls.ts";
import type { Presence } from "../../../../shared/bus/heartbeat.ts";
import { encodeJson } from "../../../../shared/bus/messages.ts";
import { callSubject, peers as names, subjects } from "../../../../shared/bus/subjects.ts";
import { startNats, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

let nats: TestNats;
beforeEach(async () => {
  nats = await startNats();
});
afterEach(() => nats?.[Symbol.asyncDispose]());

function worker(peer: string, id: string, epoch?: number): Presence {
  const numbers = {
    sandboxes: 0,
    sandboxes_max: 1,
    executions: 0,
    executions_total: 0,
    memory_free_bytes: 1,
    disk_free_bytes: 1,
    load_per_cpu: 0,
    rss_bytes: 1,
  };
  return { peer, worker: { id, ...(epoch === undefined ? {} : { epoch }), draining: false, accepts: true, host: [], ...numbers } };
}

test("peers hear of each other, not of themselves", async () => {
  const [a, b] = await Promise.all([nats.member(), nats.member()]);
  await until("both", () => a.peers.has(b.peers.peer) && b.peers.has(a.peers.peer));
  assert.deepEqual(
    [...a.peers.present()].map(({ peer }) => peer),
    [b.peers.peer],
  );
});

test("a peer that leaves is gone at once, for each listener once", async () => {
  const [a, b] = await Promise.all([nats.member(), nats.member()]);
  const gone: string[] = [];
  a.peers.onGone((peer) => gone.push(`1:${peer}`));
  a.peers.onGone((peer) => gone.push(`2:${peer}`));
  await until("the other", () => a.peers.has(b.peers.peer));
  b.peers.leave();
  await until("its end", () => !a.peers.has(b.peers.peer));
  assert.deepEqual(gone, [`1:${b.peers.peer}`, `2:${b.peers.peer}`]);
});

test("a peer's last answer counts, also where it arrives together with the news that the peer left", async () => {
  const [a, b] = await Promise.all([nats.member(), nats.member()]);
  await until("the other", () => a.peers.has(b.peers.peer));
  const subject = callSubject("alive", "leaving");
  b.bus.subscribe(subject, (message) => {
    message.respond(encodeJson({ ok: true, data: {} }));
    b.peers.leave();
  });
  await b.bus.connection.flush();
  assert.deepEqual(await a.peers.whilePresent(b.peers.peer, ask(a.bus, "alive", "leaving", {})), {});
});

test("of those that fall silent, one that is not connected or on another machine is gone before one here that is", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  const gone: string[] = [];
  peers.onGone((peer) => gone.push(peer));
  for (const connected of ["elsewhere", "here"]) other.connection.subscribe(callSubject("alive", connected), { callback: () => {} });
  for (const [peer, host] of [
    ["here", hostname()],
    ["elsewhere", "another"],
    ["mute", hostname()],
  ] as const) {
    other.publish(subjects.presence(peer), encodeJson({ peer, host }));
  }
  await until("all", () => ["mute", "elsewhere", "here"].every((peer) => peers.has(peer)));
  await until("two ends", () => gone.length >= 2);
  assert.deepEqual(gone.toSorted(), ["elsewhere", "mute"]);
  await until("the last end", () => gone.length > 2);
});

test("of peers that are in doubt, one that is not connected is gone before it misses a beat, and one that is stays", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  const gone: string[] = [];
  peers.onGone((peer) => gone.push(peer));
  other.connection.subscribe(callSubject("alive", "connected"), { callback: () => {} });
  const beat = (): void => {
    for (const peer of ["mute", "doubted", "connected"]) other.publish(subjects.presence(peer), encodeJson({ peer, host: hostname() }));
  };
  await until("all", () => {
    const are = ["mute", "doubted", "connected"].every((peer) => peers.has(peer));
    // On a busy machine, one may be gone again before the last has come.
    if (!are) beat();
    return are;
  });
  for (const peer of ["doubted", "connected", "unknown"]) peers.doubt(peer);
  await until("two ends", () => gone.length >= 2);
  assert.deepEqual(gone.slice(0, 2), ["doubted", "mute"]);
});

test("a peer that is connected and says nothing is silent, not gone, until it was silent for long", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  // Its answers do not come: only that it is connected counts.
  other.connection.subscribe(callSubject("alive", "slow"), { callback: () => {} });
  const beat = (): void => other.publish(subjects.presence("slow"), encodeJson({ peer: "slow" }));
  const gone: string[] = [];
  peers.onGone((peer) => gone.push(peer));
  beat();
  await until("the peer", () => peers.has("slow"));
  assert.equal(peers.isSilent("slow"), false);
  await until("its silence", () => peers.isSilent("slow"));
  // Time for the question whether it is there, and for more.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  assert.deepEqual([gone, peers.has("slow")], [[], true]);
  beat();
  await until("its next beat", () => !peers.isSilent("slow"));
  await until("its end", () => gone.includes("slow"));
  assert.deepEqual(gone, ["slow"]);
});

test("a worker that comes back under its id replaces the process that had it", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  const gone: string[] = [];
  peers.onGone((peer) => gone.push(peer));
  for (const [peer, id] of [
    ["old", "w1"],
    ["neighbour", "w2"],
    ["new", "w1"],
  ] as const) {
    other.publish(subjects.presence(names.worker(id, peer)), encodeJson(worker(names.worker(id, peer), id)));
  }
  await until("the newcomer", () => peers.has(names.worker("w1", "new")));
  assert.deepEqual(gone, [names.worker("w1", "old")]);
  assert.ok(peers.has(names.worker("w2", "neighbour")));
});

test("of two processes of a worker the one with the higher epoch stays, whichever is heard first", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  const gone: string[] = [];
  peers.onGone((peer) => gone.push(peer));
  const beat = (process: string, epoch: number): void => {
    const peer = names.worker("w1", process);
    other.publish(subjects.presence(peer), encodeJson(worker(peer, "w1", epoch)));
  };
  const present = (): string[] => [...peers.present()].map(({ peer }) => peer);
  beat("second", 2);
  beat("first", 1);
  beat("third", 3);
  beat("second", 2);
  await until("the third", () => present().includes(names.worker("w1", "third")));
  beat("first", 1);
  await until("the second's end", () => gone.length > 0);
  other.publish(subjects.presence("last"), encodeJson({ peer: "last" }));
  await until("the last one", () => peers.has("last"));
  assert.deepEqual([gone, present()], [[names.worker("w1", "second")], [names.worker("w1", "third"), "last"]]);
});

test("a heartbeat that cannot be read is ignored", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  for (const garbage of ["garbage", "{}", '{"peer":1}']) other.publish(subjects.presence("noise"), Buffer.from(garbage));
  other.publish(subjects.presence("fine"), encodeJson({ peer: "fine" }));
  await until("the readable one", () => peers.has("fine"));
  assert.equal([...peers.present()].length, 1);
});

test("peers are not taken for dead because the bus was away", async () => {
  const [a, b] = await Promise.all([nats.member(), nats.member()]);
  await until("both", () => a.peers.has(b.peers.peer) && b.peers.has(a.peers.peer));
  const gone: string[] = [];
  a.peers.onGone((peer) => gone.push(peer));
  await nats.server.kill9();
  await until("the loss", () => !a.bus.connected && !b.bus.connected);
  // Longer than a peer may be silent while the bus is there.
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  await nats.server.start();
  await until("both connections", () => a.bus.connected && b.bus.connected);
  await until("a beat", () => a.peers.has(b.peers.peer));
  assert.deepEqual(gone, []);
});

test("what waits for a peer ends when that was away alone, and not for an outage of both that was over before", async () => {
  const { peers, bus } = await nats.member();
  const other = await nats.connect();
  const say = (outages: number): void => other.publish(subjects.presence("other"), encodeJson({ peer: "other", host: hostname(), outages }));
  // Without beats of its own it is asked for, however long the reconnections take.
  answer(other, "process", "other", { alive: () => ({}) });
  say(1);
  await until("the other", () => peers.has("other"));
  await nats.server.kill9();
  await until("the loss", () => !bus.connected && !other.connected);
  await nats.server.start();
  await until("both connections", () => bus.connected && other.connected);
  const ended: unknown[] = [];
  peers.whilePresent("other", new Promise<never>(() => {})).catch((error: unknown) => ended.push(error));
  // Its beat on its return was lost, because this process was not back yet.
  say(2);
  await until("the beat", () => [...peers.present()].some(({ outages }) => outages === 2));
  assert.deepEqual(ended, []);
  say(3);
  await until("the end", () => ended.length === 1);
});

test("a heartbeat counts for nobody but the one whose subject it came on", async () => {
  const { peers } = await nats.member();
  const other = await nats.connect();
  const own = names.worker("w1", "hostile");
  const say = (presence: object): void => other.publish(subjects.presence(own), encodeJson(presence));
  say({ peer: names.gateway("g1"), gateway: true });
  say(worker(names.worker("w2", "p"), "w2"));
  say(worker(own, "w2"));
  say({ ...worker(own, "w1"), gateway: true });
  say({ peer: own, gateway: true });
  other.publish(subjects.presence("last"), encodeJson({ peer: "last" }));
  await until("the last one", () => peers.has("last"));
  assert.deepEqual(
    [...peers.present()].map(({ peer }) => peer),
    ["last"],
  );
});
