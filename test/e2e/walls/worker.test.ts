/** What somebody who has taken a worker over tries on the bus, with the worker's real credentials. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { verbsOf } from "../../../shared/bus/contract/contract.ts";
import { encodeJson } from "../../../shared/bus/messages.ts";
import { PeerWatch } from "../../../shared/bus/presence.ts";
import {
  auditSubjects,
  type Bucket,
  bucketStream,
  bucketSubject,
  buckets,
  callSubject,
  callsTo,
  entryBuckets,
  entryKey,
  layerSubjects,
  namedCallSubject,
  peers,
  storePrefix,
  subjects,
} from "../../../shared/bus/subjects.ts";
import { connectBus } from "../../helpers/bus.ts";
import { BusWitness } from "../../helpers/bus-witness.ts";
import { fixture } from "../../helpers/fixture.ts";
import { HostileWorker } from "../../helpers/hostile.ts";
import { quiet } from "../../helpers/nats.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const other = "another-worker";
const all = Object.values(buckets);
/** What a worker has in a bucket: its claim under its id, anything else under a name below it. */
const keptUnder = (bucket: Bucket, worker: string, name: string): string => bucketSubject(bucket, bucket === buckets.workers ? worker : entryKey(worker, name));
/** The names under which another worker is called. */
const callNames = [other, `${other}.process`];
const { bus: root, jsm, tell, arrives, lastOf, plant, unplant } = await fixture(BusWitness.open(sharedStack().natsUrl, "walls-gateway"));
const hostile = await fixture(HostileWorker.open(sharedStack().natsUrl));

/** A subject as the worker can name it on either of its connections. */
const names = (subject: string): string[] => [subject, `${storePrefix}.${subject}`, `${storePrefix}.${subject.replace("$JS.API.", "")}`];

async function saysAnyhow(subject: string, payload: string, reply?: string): Promise<void> {
  for (const name of names(subject)) await hostile.says(name, payload, reply);
}

async function learnsAnyhow(subject: string, payload = ""): Promise<string[]> {
  return (await Promise.all(names(subject).map((name) => hostile.learns(name, payload)))).flat();
}

test("reads accounts, keys, log-ins, browsers' sessions, kept answers, and other workers' entries", async () => {
  for (const bucket of all) {
    const [stream, subject] = [bucketStream(bucket), keptUnder(bucket, other, "x")];
    const canary = await plant(stream, subject);
    const last = JSON.stringify({ last_by_subj: subject });
    const learnt = [
      ...(await learnsAnyhow(`$JS.API.DIRECT.GET.${stream}.${subject}`)),
      ...(await learnsAnyhow(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify({ seq: 1 }))),
      ...(await learnsAnyhow(`$JS.API.DIRECT.GET.${stream}`, last)),
      ...(await learnsAnyhow(`$JS.API.STREAM.MSG.GET.${stream}`, last)),
    ];
    await unplant(stream, subject);
    assert.deepEqual(learnt, [], bucket);
    assert.ok(!learnt.join().includes(canary));
  }
});

test("reads, hears, writes or empties the audit record", async () => {
  const { stream, all: entries } = auditSubjects;
  const subject = auditSubjects.of("acct_walls");
  const canary = await plant(stream, subject);
  const last = JSON.stringify({ last_by_subj: subject });
  const asked = [
    [`$JS.API.DIRECT.GET.${stream}.${subject}`],
    [`$JS.API.DIRECT.GET.${stream}`, last],
    [`$JS.API.STREAM.MSG.GET.${stream}`, last],
    [`$JS.API.STREAM.INFO.${stream}`],
    [`$JS.API.STREAM.PURGE.${stream}`],
    [`$JS.API.STREAM.DELETE.${stream}`],
    [subject, "forged"],
  ] as const;
  for (const [call, payload] of asked) assert.deepEqual(await learnsAnyhow(call, payload), [], call);
  await saysAnyhow(subject, "forged");
  assert.equal(await lastOf(stream, subject), canary);
  assert.deepEqual(await hostile.overhears(entries, tell(subject, canary)), []);
});

test("hears what is written to any bucket, or to the store of layers", async () => {
  for (const bucket of all) {
    const subject = keptUnder(bucket, other, "y");
    assert.deepEqual(await hostile.overhears(bucketSubject(bucket, ">"), tell(subject)), [], bucket);
    await unplant(bucketStream(bucket), subject);
  }
});

test("writes an API key of its own into the bucket of keys", async () => {
  const key = `sg_${randomBytes(36).toString("base64url")}`;
  const hash = createHash("sha256").update(key).digest("hex");
  const subject = bucketSubject(buckets.keys, hash);
  await saysAnyhow(subject, JSON.stringify({ id: "key_x", account_id: "acct_x", name: "x", prefix: "sg_", created_at_ms: 1 }));
  assert.equal(await lastOf(bucketStream(buckets.keys), subject), undefined);
  assert.equal((await fetch(`${sharedStack().url}/v1/sandboxes/list`, { headers: { "x-api-key": key } })).status, 401);
});

test("overwrites or deletes what is in any bucket under a key that is not its own", async () => {
  for (const bucket of all) {
    const [stream, subject] = [bucketStream(bucket), keptUnder(bucket, other, "z")];
    const canary = await plant(stream, subject);
    await saysAnyhow(subject, "forged");
    assert.equal(await lastOf(stream, subject), canary, bucket);
    await unplant(stream, subject);
  }
});

test("has the storage send what it chose as an answer to another worker, into a bucket, or to the storage itself", async () => {
  const bucket = buckets.sandboxes;
  const stream = bucketStream(bucket);
  const own = bucketSubject(bucket, entryKey(hostile.id, "bait"));
  const victim = bucketSubject(buckets.keys, "deputy");
  await hostile.storage.connection.request(`${storePrefix}.${own}`, JSON.stringify({ forged: true }));
  const before = (await jsm.streams.info(stream)).state;
  const heard = await arrives(">", async () => {
    for (const reply of [victim, callSubject("execute", other), callSubject("adopt", peers.gateway("g")), `$JS.API.STREAM.PURGE.${stream}`]) {
      await saysAnyhow(own, "again", reply);
      await saysAnyhow(`$JS.API.DIRECT.GET.${stream}.${own}`, "", reply);
      await hostile.says(callSubject("held", peers.gateway("g")), JSON.stringify({ ids: [] }), reply);
    }
  });
  assert.deepEqual(
    heard.filter((subject) => subject === victim || subject.startsWith("$JS.API.STREAM.PURGE") || subject.includes(other) || subject.endsWith(".adopt")),
    [],
  );
  assert.equal(await lastOf(bucketStream(buckets.keys), victim), undefined);
  assert.ok((await jsm.streams.info(stream)).state.first_seq >= before.first_seq);
  await unplant(stream, own);
});

test("hears or answers the commands of another worker", async () => {
  for (const verb of verbsOf("worker")) {
    for (const name of callNames) assert.deepEqual(await hostile.overhears(callsTo("worker", name), tell(callSubject(verb, name))), [], verb);
  }
  assert.deepEqual(await hostile.overhears("sandgate.worker.>", tell(callSubject("execute", other))), []);
  assert.deepEqual(await hostile.overhears(">", tell(callSubject("execute", other))), []);
});

test("gives another worker commands", async () => {
  for (const name of callNames) {
    assert.deepEqual(
      await arrives(callsTo("worker", name), async () => {
        for (const verb of verbsOf("worker")) await saysAnyhow(callSubject(verb, name), "{}");
      }),
      [],
    );
  }
});

test("hears the replies that gateways get", async () => {
  for (const pattern of ["_INBOX.>", "_INBOX.walls-gateway.>", "_INBOX.gateway.>", "_R_.>"]) {
    assert.deepEqual(await hostile.overhears(pattern, tell(`${subjects.inbox("walls-gateway")}.reply`)), [], pattern);
    assert.deepEqual(await hostile.overhears(pattern, tell(`${subjects.inbox("gateway")}.gw_1.reply`)), [], pattern);
  }
});

test("answers for others what a gateway has asked them", async () => {
  const inbox = subjects.inbox("walls-gateway");
  assert.deepEqual(await arrives(`${inbox}.>`, () => saysAnyhow(`${inbox}.reply`, JSON.stringify({ ok: true, data: {} }))), []);
});

/** What workers ask gateways: by ids that are random, and known only to whom it concerns. */
const forWorkers: readonly string[] = ["held"];

test("asks gateways for what they ask each other, and hears it", async () => {
  for (const verb of verbsOf("gateway")) {
    const subject = callSubject(verb, peers.gateway("walls"));
    assert.deepEqual(await hostile.overhears(callSubject(verb, peers.gateway("*")), tell(subject)), [], verb);
    if (!forWorkers.includes(verb)) assert.deepEqual(await arrives(subject, () => saysAnyhow(subject, "{}")), [], verb);
  }
});

test("has a move of another worker's sandbox to a third one given up, in its own name or in theirs", async () => {
  const watch = new PeerWatch(root, peers.gateway("walls-asker"), quiet);
  const { peer } = await until("a gateway", () => [...watch.present()].find((one) => one.gateway));
  const [stream, subject] = [bucketStream(buckets.sandboxes), bucketSubject(buckets.sandboxes, entryKey(other, "sb_walls"))];
  const move = { id: "move_walls", from: other, peer, to: "third-worker" };
  const sandbox = { id: "sb_walls", name: "walls", account_id: "acct_walls", key_id: "key_walls", worker_id: other, status: "moving", created_at_ms: 1 };
  const entry = JSON.stringify({ ...sandbox, cpu: 1, memory: 512, storage: 5, network: "none", isolation: "standard", image: "default", move });
  await jsm.jetstream().publish(subject, entry);
  const asked = JSON.stringify({ sandbox_id: "sb_walls", move_id: move.id, from: other });
  const asking = (id: string): string => namedCallSubject("settleMove", peer, id);
  try {
    // The control: it is heard in its own name, and refused.
    const answer = await hostile.calls.connection.request(asking(hostile.id), asked, { timeout: 10_000 });
    assert.match(answer.string(), /"unavailable".*on its way to another worker/);
    for (const id of [move.to, other, "*", ">"]) assert.deepEqual(await arrives(asking(id), () => saysAnyhow(asking(id), asked)), [], id);
    for (const id of [move.to, other]) assert.deepEqual(await learnsAnyhow(asking(id), asked), [], id);
    const toNobody = (id: string): string => namedCallSubject("settleMove", peers.gateway("walls"), id);
    assert.deepEqual(await hostile.overhears(toNobody("*"), tell(toNobody(other))), []);
    assert.equal(await lastOf(stream, subject), entry);
  } finally {
    await unplant(stream, subject);
  }
});

test("says in heartbeats that it is a gateway or another worker", async () => {
  const watch = new PeerWatch(root, peers.gateway("walls-watch"), quiet);
  const forged = [peers.gateway("forged"), peers.worker(other, "forged")];
  for (const peer of forged) {
    assert.deepEqual(await arrives(subjects.presence(peer), () => saysAnyhow(subjects.presence(peer), JSON.stringify({ peer, gateway: true }))), []);
    // Under its own name, in another's.
    await hostile.says(subjects.presence(peers.worker(hostile.id, "forged")), JSON.stringify({ peer, gateway: true }));
  }
  await root.connection.flush();
  assert.deepEqual(
    forged.filter((peer) => watch.has(peer)),
    [],
  );
});

test("joins or hears the streams of another worker, or of a gateway", async () => {
  for (const peer of [peers.worker(other, "p"), peers.gateway("g")]) {
    assert.deepEqual(await hostile.overhears(subjects.stream(peer, "*"), tell(subjects.stream(peer, "st_1"))), [], peer);
  }
  assert.deepEqual(await arrives("sandgate.stream.worker.>", () => saysAnyhow(subjects.stream(peers.worker(other, "p"), "st_1"), "{}\n")), []);
});

test("deletes, purges, empties, changes or makes streams, and has a consumer deliver for it", async () => {
  const streams = [...all.map(bucketStream), layerSubjects.stream];
  const before = await Promise.all(streams.map(async (stream) => (await jsm.streams.info(stream)).config));
  const consumer = { stream_name: "", config: { deliver_subject: callSubject("execute", other), ack_policy: "none" } };
  const [stream, subject] = [bucketStream(buckets.accounts), bucketSubject(buckets.accounts, "kept")];
  const canary = await plant(stream, subject);
  for (const { name, ...config } of before) {
    assert.deepEqual(
      (
        await Promise.all([
          learnsAnyhow(`$JS.API.STREAM.PURGE.${name}`),
          learnsAnyhow(`$JS.API.STREAM.UPDATE.${name}`, JSON.stringify({ ...config, name, max_bytes: 1 })),
          learnsAnyhow(`$JS.API.STREAM.MSG.DELETE.${name}`, JSON.stringify({ seq: 1 })),
          learnsAnyhow(`$JS.API.STREAM.SNAPSHOT.${name}`, JSON.stringify({ deliver_subject: "x" })),
          learnsAnyhow(`$JS.API.CONSUMER.CREATE.${name}`, JSON.stringify({ ...consumer, stream_name: name })),
          learnsAnyhow(`$JS.API.CONSUMER.DURABLE.CREATE.${name}.c`, JSON.stringify({ ...consumer, stream_name: name })),
          learnsAnyhow(`$JS.API.STREAM.DELETE.${name}`),
        ])
      ).flat(),
      [],
      name,
    );
  }
  assert.deepEqual(await learnsAnyhow("$JS.API.STREAM.CREATE.S", JSON.stringify({ name: "S", subjects: ["sandgate.>"] })), []);
  assert.deepEqual(await Promise.all(streams.map(async (name) => (await jsm.streams.info(name)).config)), before);
  assert.equal(await lastOf(stream, subject), canary);
  await unplant(stream, subject);
});

test("replaces or removes layers that another worker has stored", async () => {
  const places = [layerSubjects.record(other, "layer_1"), layerSubjects.pieces(other, "layer_1", "a"), layerSubjects.formerRecord("layer_1")];
  for (const subject of places) {
    const canary = await plant(layerSubjects.stream, subject);
    await saysAnyhow(subject, "forged");
    assert.equal(await lastOf(layerSubjects.stream, subject), canary, subject);
    await unplant(layerSubjects.stream, subject);
  }
});

test("looks at the server and at who else is connected", async () => {
  for (const subject of ["$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.SANDGATE.CONNZ", "$SYS.REQ.ACCOUNT.SANDGATE.SUBSZ"]) {
    assert.deepEqual(await learnsAnyhow(subject), [], subject);
  }
  assert.deepEqual(await hostile.overhears("$SYS.>", async () => void (await (await connectBus(sharedStack().natsUrl, "walls-passer-by")).close())), []);
});

test("control: the worker writes, reads and deletes its own entries, writes and reads its claim, and adds layers", async () => {
  for (const bucket of entryBuckets) {
    const subject = bucketSubject(bucket, entryKey(hostile.id, "control"));
    assert.equal((await hostile.learns(`${storePrefix}.${subject}`, "own")).length, 1);
    assert.equal(await lastOf(bucketStream(bucket), subject), "own");
    assert.deepEqual(await hostile.learns(`${storePrefix}.DIRECT.GET.${bucketStream(bucket)}.${subject}`), ["own"]);
    await unplant(bucketStream(bucket), subject);
  }
  const claim = bucketSubject(buckets.workers, hostile.id);
  const [claimed = ""] = await hostile.learns(`${storePrefix}.DIRECT.GET.${bucketStream(buckets.workers)}.${claim}`);
  assert.match(claimed, /"home":/);
  // As it is: the worker whose credentials these are goes on with it.
  assert.equal((await hostile.learns(`${storePrefix}.${claim}`, claimed)).length, 1);
  const piece = layerSubjects.pieces(hostile.id, "layer_control", "a");
  assert.equal((await hostile.learns(`${storePrefix}.${piece}`, "bytes")).length, 1);
  await unplant(layerSubjects.stream, piece);
});

test("control: its heartbeats arrive, and its answers to calls", async () => {
  const own = subjects.presence(peers.worker(hostile.id, "control"));
  const heard: string[] = [];
  const listening = root.connection.subscribe(own, { callback: (_error, message) => void heard.push(message.subject) });
  await root.connection.flush();
  await hostile.says(own, "{}");
  await until("the heartbeat", () => heard.length === 1);
  listening.unsubscribe();
  // The worker itself knows no such call.
  hostile.calls.serve(callsTo("worker", hostile.id), async () => ({}));
  await hostile.flush();
  const call = callsTo("worker", hostile.id).replace("*", "none");
  assert.ok((await root.connection.request(call, encodeJson({}), { timeout: 5_000 })).data.length > 0);
});
