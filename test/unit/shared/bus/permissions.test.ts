/** Who may do what on the bus: everything that there is on it is accounted for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { verbsOf } from "../../../../shared/bus/contract/contract.ts";
import {
  accountsOf,
  clusterAccount,
  gatewayPermissions,
  mainAccount,
  systemAccount,
  workerPermissions,
  workerStorage,
} from "../../../../shared/bus/permissions.ts";
import {
  allStreams,
  auditSubjects,
  bucketStream,
  bucketSubject,
  buckets,
  callSubject,
  entryBuckets,
  entryKey,
  layerSubjects,
  memberBucket,
  namedCallSubject,
  peers,
  subjects,
} from "../../../../shared/bus/subjects.ts";

const { publish, subscribe, allow_responses } = workerPermissions("w1");
const storage = workerStorage("w1").map(({ subject }) => subject);

/** Whether a subject is among those that a pattern means, as the server decides it. */
function means(pattern: string, subject: string): boolean {
  const [wanted, given] = [pattern.split("."), subject.split(".")];
  for (const [index, token] of wanted.entries()) {
    if (token === ">") return given.length > index;
    if (given[index] === undefined || (token !== "*" && token !== given[index])) return false;
  }
  return wanted.length === given.length;
}
const may = (list: readonly string[], subject: string): boolean => list.some((pattern) => means(pattern, subject));

test("a worker hears every call to itself and none to another", () => {
  for (const verb of verbsOf("worker")) {
    for (const own of ["w1", "w1.p"]) {
      assert.ok(may(subscribe.allow, callSubject(verb, own)), verb);
      for (const other of ["w2", "w", "w11"]) assert.ok(!may(subscribe.allow, callSubject(verb, own.replace("w1", other))), verb);
      assert.ok(!may(publish.allow, callSubject(verb, own)) && !may(publish.allow, callSubject(verb, own.replace("w1", "w2"))), verb);
    }
  }
  assert.equal(allow_responses.max, 1);
});

test("of the calls between gateways a worker may ask whether something is waited for and whose a sandbox is, and hears none", () => {
  const asked = verbsOf("gateway").filter((verb) => may(publish.allow, callSubject(verb, peers.gateway("g"))));
  assert.deepEqual(asked, ["held"]);
  const saysItIs = (id: string): boolean => may(publish.allow, namedCallSubject("settleMove", peers.gateway("g"), id));
  assert.ok(saysItIs("w1"));
  for (const other of ["w2", "w", "w11", "*", ">"]) assert.ok(!saysItIs(other), other);
  for (const verb of verbsOf("gateway")) assert.ok(!may(subscribe.allow, callSubject(verb, peers.gateway("g"))), verb);
});

test("it speaks in streams and heartbeats under its own name, to gateways", () => {
  assert.ok(may(publish.allow, subjects.presence(peers.worker("w1", "p"))));
  for (const peer of [peers.worker("w2", "p"), peers.gateway("g")]) assert.ok(!may(publish.allow, subjects.presence(peer)), peer);
  assert.ok(may(publish.allow, subjects.stream(peers.gateway("g"), "s")));
  assert.ok(!may(publish.allow, subjects.stream(peers.worker("w2", "p"), "s")));
  assert.ok(may(subscribe.allow, subjects.stream(peers.worker("w1", "p"), "s")));
  for (const peer of [peers.worker("w2", "p"), peers.gateway("g")]) assert.ok(!may(subscribe.allow, subjects.stream(peer, "s")), peer);
  assert.ok(may(subscribe.allow, subjects.presence(peers.gateway("g"))));
  assert.ok(!may(subscribe.allow, subjects.presence(peers.worker("w2", "p"))));
});

test("nothing that reaches the storage is among what a worker says beside it", () => {
  for (const subject of ["$JS.API.INFO", "$JS.API.STREAM.PURGE.S", "$SYS.REQ.SERVER.PING", "$JS.ACK.S.C.1"]) assert.ok(!may(publish.allow, subject), subject);
  for (const bucket of Object.values(buckets)) assert.ok(!may(publish.allow, bucketSubject(bucket, "w1.x")), bucket);
});

test("a worker writes its own entries in the buckets of entries, and touches no other bucket", () => {
  for (const bucket of Object.values(buckets)) {
    const isOfEntries = entryBuckets.some((each) => each === bucket);
    assert.equal(may(storage, bucketSubject(bucket, entryKey("w1", "x"))), isOfEntries, bucket);
    assert.ok(!may(storage, bucketSubject(bucket, entryKey("w2", "x"))), bucket);
    assert.ok(!may(storage, bucketSubject(bucket, "x")), bucket);
    const own = `$JS.API.DIRECT.GET.${bucketStream(bucket)}.${bucketSubject(bucket, entryKey("w1", "x"))}`;
    assert.equal(may(storage, own), isOfEntries, bucket);
    assert.ok(!may(storage, own.replace("w1.x", "w2.x")), bucket);
    assert.ok(!may(storage, `$JS.API.DIRECT.GET.${bucketStream(bucket)}`), "any entry, by its number");
    assert.ok(!may(storage, `$JS.API.STREAM.MSG.GET.${bucketStream(bucket)}`));
  }
});

test("a worker writes and reads its own claim, and no other", () => {
  const claimOf = (id: string): string => bucketSubject(buckets.workers, id);
  const last = (id: string): string => `$JS.API.DIRECT.GET.${bucketStream(buckets.workers)}.${claimOf(id)}`;
  assert.ok(may(storage, claimOf("w1")) && may(storage, last("w1")));
  for (const other of ["w2", "w", "w11", "*", ">"]) assert.ok(!may(storage, claimOf(other)) && !may(storage, last(other)), other);
});

test("it adds layers under its own name alone", () => {
  assert.ok(may(storage, layerSubjects.record("w1", "layer_1")) && may(storage, layerSubjects.pieces("w1", "layer_1", "a")));
  assert.ok(!may(storage, layerSubjects.record("w2", "layer_1")) && !may(storage, layerSubjects.pieces("w2", "layer_1", "a")));
  assert.ok(!may(storage, layerSubjects.formerRecord("layer_1")) && !may(storage, layerSubjects.formerPieces("layer_1", "a")));
});

test("it neither writes nor reads the audit record", () => {
  for (const subject of [auditSubjects.of("acct_1"), auditSubjects.of("machine")])
    assert.ok(!may(publish.allow, subject) && !may(subscribe.allow, subject) && !may(storage, subject));
  assert.deepEqual(
    storage.filter((subject) => subject.includes(auditSubjects.stream)),
    [],
  );
});

test("no call that changes a stream or makes a consumer is allowed", () => {
  const calls = storage.filter((subject) => subject.startsWith("$JS.")).map((subject) => subject.split(".").slice(2, 4).join("."));
  assert.deepEqual([...new Set(calls)].sort(), ["DIRECT.GET", "STREAM.INFO"]);
});

const gateway = gatewayPermissions("UG");
const mayPublish = (subject: string): boolean => may(gateway.publish.allow, subject);

test("a gateway calls every worker and gateway, and hears no call to a worker", () => {
  for (const name of ["w1", "w1.p"]) for (const verb of verbsOf("worker")) assert.ok(mayPublish(callSubject(verb, name)), verb);
  for (const verb of verbsOf("worker"))
    assert.ok(!may(gateway.subscribe.allow, callSubject(verb, "w1")) && !may(gateway.subscribe.allow, callSubject(verb, "w1.p")));
  for (const verb of verbsOf("gateway")) {
    const subject = verb === "settleMove" ? namedCallSubject(verb, peers.gateway("g"), "w1") : callSubject(verb, peers.gateway("g"));
    assert.ok(may(gateway.subscribe.allow, subject), verb);
    assert.equal(mayPublish(subject), verb !== "settleMove", verb);
  }
  for (const peer of [peers.gateway("g"), peers.worker("w1", "p")]) assert.ok(mayPublish(callSubject("alive", peer)), peer);
});

test("it says nothing that is a worker's to say, and hears only the replies to its own machine", () => {
  assert.ok(mayPublish(subjects.presence(peers.gateway("g"))) && !mayPublish(subjects.presence(peers.worker("w1", "p"))));
  assert.ok(mayPublish(subjects.stream(peers.worker("w1", "p"), "s")) && !mayPublish(subjects.stream(peers.gateway("g"), "s")));
  for (const inbox of ["UG", "UH", "worker.w1", peers.gateway("g"), "root.backup"]) {
    // Gateways of versions before 0.2 have theirs by their own names.
    assert.equal(may(gateway.subscribe.allow, `${subjects.inbox(inbox)}.r.1`), ["UG", peers.gateway("g")].includes(inbox), inbox);
  }
});

test("it replies to workers, and to gateways where these hear no worker, and the server remembers nothing for that", () => {
  for (const inbox of ["UG", "UH", "root.backup"]) assert.ok(!mayPublish(`${subjects.inbox(inbox)}.r.1`), inbox);
  for (const inbox of ["worker.w1", peers.gateway("g")]) assert.ok(mayPublish(`${subjects.inbox(inbox)}.r.1`), inbox);
  assert.ok(mayPublish(`${subjects.gatewayReplies("UH")}.1`));
  for (const identity of ["UG", "UH"]) assert.equal(may(gateway.subscribe.allow, `${subjects.gatewayReplies(identity)}.1`), identity === "UG", identity);
  // What is remembered is each entry of a watch, too.
  assert.deepEqual(Object.keys(gateway), ["publish", "subscribe"]);
});

test("it writes entries of all buckets, the audit record and records of layers, but no layers", () => {
  for (const bucket of Object.values(buckets)) assert.ok(mayPublish(bucketSubject(bucket, "w1.x")), bucket);
  assert.ok(mayPublish(auditSubjects.of("acct_1")) && mayPublish(layerSubjects.record("w1", "layer_1")));
  assert.ok(!mayPublish(layerSubjects.pieces("w1", "layer_1", "a")) && !mayPublish(layerSubjects.formerPieces("layer_1", "a")));
  assert.ok(!mayPublish(bucketSubject(memberBucket, "x")));
});

test("it makes, reads and watches the streams of the installation, and removes, copies or empties none but that of layers", () => {
  for (const stream of allStreams) {
    for (const call of ["CREATE", "UPDATE", "INFO", "MSG.GET"]) assert.ok(mayPublish(`$JS.API.STREAM.${call}.${stream}`), call);
    for (const call of ["DELETE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN", "PEER.REMOVE"]) assert.ok(!mayPublish(`$JS.API.STREAM.${call}.${stream}`), call);
    assert.equal(mayPublish(`$JS.API.STREAM.PURGE.${stream}`), stream === layerSubjects.stream, stream);
    const isBucket = stream.startsWith("KV_");
    assert.equal(mayPublish(`$JS.API.STREAM.MSG.DELETE.${stream}`), isBucket, stream);
    assert.equal(mayPublish(`$JS.API.CONSUMER.CREATE.${stream}.c.$KV.x.>`), isBucket, stream);
    assert.ok(!mayPublish(`$JS.API.CONSUMER.DURABLE.CREATE.${stream}.c`) && !mayPublish(`$JS.API.CONSUMER.LIST.${stream}`));
  }
  const others = [bucketStream(memberBucket), "ANY"].flatMap((stream) =>
    ["CREATE", "INFO", "UPDATE", "DELETE"].map((call) => `$JS.API.STREAM.${call}.${stream}`),
  );
  for (const subject of [...others, "$JS.API.STREAM.LIST", "$JS.API.STREAM.NAMES", "$SYS.REQ.SERVER.PING", "$JS.ACK.S.C.1"])
    assert.ok(!mayPublish(subject), subject);
  for (const subject of ["$SYS.ACCOUNT.SANDGATE.CONNECT", "$JS.EVENT.ADVISORY.x", bucketSubject(buckets.keys, "x")])
    assert.ok(!may(gateway.subscribe.allow, subject), subject);
});

test("each worker has an account of its own for the storage, into which only its own part is brought", () => {
  const workers = [
    { id: "w1", nkey: "U1", storeNkey: "S1" },
    { id: "w2", nkey: "U2", storeNkey: "S2" },
  ];
  const accounts = accountsOf({ gateways: ["UG"], workers, roots: ["UR"] }) as Record<
    string,
    { users: { nkey: string; permissions?: unknown }[]; imports?: { service: { subject: string } }[]; exports?: { service: string; accounts: string[] }[] }
  >;
  assert.deepEqual(Object.keys(accounts), [mainAccount, clusterAccount, systemAccount, "STORE_w1", "STORE_w2"]);
  const main = accounts[mainAccount] ?? assert.fail();
  assert.deepEqual(
    main.users.map(({ nkey, permissions }) => [nkey, permissions !== undefined]),
    [
      ["UR", false],
      ["UG", true],
      ["U1", true],
      ["U2", true],
    ],
  );
  for (const { service, accounts: sharing } of main.exports ?? []) {
    if (/\.w1(\.|$)/.test(service)) assert.deepEqual(sharing, ["STORE_w1"], service);
    if (/\.w2(\.|$)/.test(service)) assert.deepEqual(sharing, ["STORE_w2"], service);
  }
  assert.ok(accounts.STORE_w1?.imports?.every(({ service }) => !service.subject.includes("w2")));
});
