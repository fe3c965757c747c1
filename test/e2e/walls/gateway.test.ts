/** What somebody who has taken a gateway over tries on the bus, with the gateway's real credentials. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream";
import { createUser } from "@nats-io/nkeys";
import { ask } from "../../../shared/bus/calls.ts";
import { openStorage } from "../../../shared/bus/jetstream.ts";
import { openBucket } from "../../../shared/bus/kv.ts";
import { encodeJson } from "../../../shared/bus/messages.ts";
import { gatewayInbox, workerInbox } from "../../../shared/bus/permissions.ts";
import { PeerWatch } from "../../../shared/bus/presence.ts";
import {
  allStreams,
  auditSubjects,
  bucketStream,
  bucketSubject,
  buckets,
  callSubject,
  callsTo,
  layerSubjects,
  memberBucket,
  namedCallSubject,
  peers,
  processOfWorker,
  storeCalls,
  subjects,
} from "../../../shared/bus/subjects.ts";
import { BusWitness } from "../../helpers/bus-witness.ts";
import { fixture } from "../../helpers/fixture.ts";
import { HostileGateway } from "../../helpers/hostile.ts";
import { quiet } from "../../helpers/nats.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const { bus: root, jsm, tell, arrives, lastOf, plant, unplant } = await fixture(BusWitness.open(sharedStack().natsUrl, "walls-root"));
const hostile = await fixture(HostileGateway.open(sharedStack().natsUrl));

const worker = peers.worker("walls-worker", "process");
const api = (call: string): string => `${storeCalls.prefix}.${call}`;
const otherGateway = gatewayInbox(createUser().getPublicKey());
/** Of gateways on another machine, where they hear workers, and of root's commands. */
const otherInboxes = [otherGateway, "root.walls"].map(subjects.inbox);
/** Where others hear gateways alone. */
const gatewayReplies = [subjects.inbox(workerInbox("walls-worker")), subjects.gatewayReplies(otherGateway)];

const reply = JSON.stringify({ ok: true, data: {} });

/** What is stored in the attacker's own right, to be sent elsewhere by the storage. */
const bait = layerSubjects.record("walls-worker", "bait");

test("says in heartbeats that it is a worker", async () => {
  const beat = JSON.stringify({ peer: worker, gone: true });
  assert.deepEqual(await arrives(subjects.presence(worker), () => hostile.says(subjects.presence(worker), beat)), []);
  const watch = new PeerWatch(root, peers.gateway("walls-watch"), quiet);
  await root.connection.flush();
  // Under its own name, in another's.
  await hostile.says(subjects.presence(peers.gateway("walls")), JSON.stringify({ peer: worker }));
  await root.connection.flush();
  assert.ok(!watch.has(worker));
});

test("says on a stream what only a worker says, or asks in a worker's name", async () => {
  assert.deepEqual(await arrives("sandgate.stream.gateway.>", () => hostile.says(subjects.stream(peers.gateway("g"), "st_1"), "{}\n")), []);
  const asked = namedCallSubject("settleMove", peers.gateway("g"), "walls-worker");
  assert.deepEqual(await arrives(asked, () => hostile.says(asked, "{}")), []);
});

test("hears or answers the commands of a worker", async () => {
  for (const name of ["walls-worker", processOfWorker(worker)]) {
    assert.deepEqual(await hostile.overhears(callsTo("worker", name), tell(callSubject("execute", name))), []);
    assert.deepEqual(await hostile.overhears("sandgate.worker.>", tell(callSubject("execute", name))), []);
  }
  assert.deepEqual(await hostile.overhears(">", tell(callSubject("execute", "walls-worker"))), []);
});

test("hears the replies to gateways of other machines, to workers or to root's commands, or replies in another's place", async () => {
  for (const inbox of [...otherInboxes, ...gatewayReplies]) {
    for (const pattern of ["_INBOX.>", "_INBOX.*.>", "_INBOX.gateways.>", "_R_.>", `${inbox}.>`])
      assert.deepEqual(await hostile.overhears(pattern, tell(`${inbox}.reply`)), []);
  }
  for (const inbox of otherInboxes) assert.deepEqual(await arrives(`${inbox}.>`, () => hostile.says(`${inbox}.reply`, reply)), []);
});

test("is asked to reply where somebody else hears workers", async () => {
  const asked = callSubject("usage", peers.gateway("walls-reply"));
  hostile.bus.serve(asked, async () => ({}));
  await hostile.flush();
  const heard: string[] = [];
  const listening = root.connection.subscribe("_INBOX.*.>", { callback: (_error, { subject }) => void (subject.endsWith(".asked") && heard.push(subject)) });
  // Those that may be replied to are the control, and come last.
  for (const inbox of [...otherInboxes, ...gatewayReplies]) root.connection.publish(asked, reply, { reply: `${inbox}.asked` });
  await until("the last reply", () => heard.includes(`${gatewayReplies.at(-1)}.asked`));
  listening.unsubscribe();
  assert.deepEqual(
    heard,
    gatewayReplies.map((inbox) => `${inbox}.asked`),
  );
});

/** Has the storage send what is stored on `bait` to a subject of the attacker's choice. */
async function has(payload: unknown, sentTo: string): Promise<void> {
  await hostile.bus.connection.request(bait, encodeJson(payload));
  await hostile.says(api(storeCalls.getLast(layerSubjects.stream, bait)), "", sentTo);
  await root.connection.flush();
}

test("has the storage speak in the place of a worker", async () => {
  const watch = new PeerWatch(root, peers.gateway("walls-watch-2"), quiet);
  const beat = subjects.presence(worker);
  // It does arrive there; nobody takes it.
  assert.deepEqual(await arrives(beat, () => has({ peer: worker, host: "walls" }, beat)), [beat]);
  assert.ok(!watch.has(worker));
  const asked = Promise.withResolvers<string>();
  root.connection.subscribe(callSubject("sessions", processOfWorker(worker)), { callback: (_error, { reply }) => asked.resolve(reply ?? "") });
  const request = { request_id: "req_walls", account_id: "acct_walls", sandbox_id: "sb_walls" };
  const answer = ask(root, "sessions", processOfWorker(worker), request).then(
    () => "taken",
    () => "refused",
  );
  await has({ ok: true, data: { sessions: [] } }, await asked.promise);
  assert.equal(await answer, "refused");
  await unplant(layerSubjects.stream, bait);
});

test("has a consumer of the storage deliver what it chose as what a worker says on a stream", async () => {
  const heard: string[] = [];
  const stream = subjects.stream(peers.gateway("walls"), "st_1");
  root.subscribe(stream, ({ subject }) => void heard.push(subject));
  await root.connection.flush();
  const { jsm: own } = await openStorage(hostile.bus);
  const key = bucketSubject(buckets.pulse, "st_1");
  await own.jetstream().publish(key, "{}\n");
  const config = { name: "walls", filter_subject: key, deliver_subject: stream };
  const arrived = await arrives(stream, async () => {
    await own.consumers.add(bucketStream(buckets.pulse), {
      ...config,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.All,
      inactive_threshold: 1_000_000_000,
    });
    await until("it was delivered", async () => (await own.consumers.info(bucketStream(buckets.pulse), "walls")).delivered.consumer_seq > 0);
  });
  await own.consumers.delete(bucketStream(buckets.pulse), "walls");
  assert.deepEqual([arrived, heard], [[key], []]);
});

test("deletes, empties, copies, replaces or makes streams, or removes what was recorded", async () => {
  const before = await Promise.all(allStreams.map(async (stream) => (await jsm.streams.info(stream)).config));
  const [stream, subject] = [auditSubjects.stream, auditSubjects.of("acct_walls")];
  const canary = await plant(stream, subject);
  const calls = allStreams.flatMap((name) => [
    [api(`STREAM.DELETE.${name}`), ""],
    ...(name === layerSubjects.stream ? [] : [[api(storeCalls.purge(name)), ""]]),
    ...(name.startsWith("KV_") ? [] : [[api(storeCalls.deleteMessage(name)), JSON.stringify({ seq: 1 })]]),
    [api(storeCalls.snapshot(name)), JSON.stringify({ deliver_subject: "x" })],
    [api(storeCalls.restore(name)), "{}"],
    [api(`STREAM.LEADER.STEPDOWN.${name}`), ""],
    [api(`CONSUMER.DURABLE.CREATE.${name}.c`), JSON.stringify({ stream_name: name, config: { durable_name: "c", ack_policy: "none" } })],
    [api(`CONSUMER.NAMES.${name}`), ""],
  ]) as [string, string][];
  const own = [
    [api("STREAM.CREATE.S"), JSON.stringify({ name: "S", subjects: ["_INBOX.>"] })],
    [api("STREAM.CREATE.S"), JSON.stringify({ name: allStreams[0], subjects: ["sandgate.>"] })],
    [api("STREAM.NAMES"), ""],
    [api("STREAM.LIST"), ""],
  ] as [string, string][];
  const learnt = await Promise.all([...calls, ...own].map(async ([call, payload]) => (await hostile.learns(call, payload)).map((answer) => [call, answer])));
  assert.deepEqual(learnt.flat(), []);
  assert.deepEqual(await Promise.all(allStreams.map(async (name) => (await jsm.streams.info(name)).config)), before);
  assert.equal(await lastOf(stream, subject), canary);
});

test("stores or replaces the layers of a worker", async () => {
  for (const subject of [layerSubjects.pieces("walls-worker", "layer_1", "a"), layerSubjects.formerPieces("layer_1", "a")]) {
    const canary = await plant(layerSubjects.stream, subject);
    await hostile.says(subject, "forged");
    assert.equal(await lastOf(layerSubjects.stream, subject), canary, subject);
    await unplant(layerSubjects.stream, subject);
  }
});

test("looks at the server, at who else is connected, and at the list of machines", async () => {
  const calls = [
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.SERVER.PING.CONNZ",
    "$SYS.REQ.ACCOUNT.SANDGATE.CONNZ",
    "$SYS.REQ.ACCOUNT.SANDGATE.SUBSZ",
    "$SYS.REQ.USER.INFO",
  ];
  const members = [storeCalls.info(bucketStream(memberBucket)), "STREAM.MSG.GET.KV_sandgate_members", "SERVER.REMOVE", "META.LEADER.STEPDOWN"].map(api);
  for (const subject of [...calls, ...members]) assert.deepEqual(await hostile.learns(subject), [], subject);
  for (const subject of ["$SYS.>", "$JS.EVENT.>", bucketSubject(buckets.keys, ">"), "$JS.API.>"]) {
    assert.deepEqual(
      await hostile.overhears(subject, async () => void (await unplant(bucketStream(buckets.pulse), bucketSubject(buckets.pulse, "nothing")))),
      [],
      subject,
    );
  }
});

test("control: it does what gateways do", async () => {
  const watch = new PeerWatch(hostile.bus, peers.gateway("walls-control"), quiet);
  const present = await until("a worker", () => [...watch.present()].find(({ worker }) => worker));
  const workerId = present.worker?.id ?? "";
  const request = { request_id: "req_walls", account_id: "acct_walls", sandbox_id: "sb_walls" };
  await assert.rejects(ask(hostile.bus, "sessions", processOfWorker(present.peer), request), { code: "not_found" }, workerId);
  await ask(hostile.bus, "alive", present.peer, {});
  // It asks gateways, and answers them.
  const self = peers.gateway("walls-control");
  hostile.bus.serve(callSubject("held", self), async () => ({ ids: ["r"] }));
  await hostile.flush();
  assert.deepEqual(await ask(hostile.bus, "held", self, { ids: [] }), { ids: ["r"] });
  const kv = await openBucket(hostile.bus, buckets.pulse);
  const seen: string[] = [];
  const entries = await kv.watch({ key: "walls.*" });
  const reading = (async () => {
    for await (const { key } of entries) seen.push(key);
  })();
  await kv.put("walls.control", "x");
  assert.equal((await kv.get("walls.control"))?.string(), "x");
  await until("it is seen", () => seen.includes("walls.control"));
  entries.stop();
  await reading;
  await unplant(bucketStream(buckets.pulse), bucketSubject(buckets.pulse, "walls.control"));
});
