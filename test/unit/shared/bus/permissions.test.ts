/** Who may do what on the bus: everything that there is on it is accounted for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { verbsOf } from "../../../../shared/bus/contract/contract.ts";
import { accountsOf, clusterAccount, mainAccount, systemAccount, workerPermissions, workerStorage } from "../../../../shared/bus/permissions.ts";
import {
  auditSubjects,
  bucketStream,
  bucketSubject,
  buckets,
  callSubject,
  entryBuckets,
  entryKey,
  layerSubjects,
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

test("each worker has an account of its own for the storage, into which only its own part is brought", () => {
  const accounts = accountsOf(
    ["UG"],
    [
      { id: "w1", nkey: "U1", storeNkey: "S1" },
      { id: "w2", nkey: "U2", storeNkey: "S2" },
    ],
  ) as Record<
    string,
    { users: { nkey: string; permissions?: unknown }[]; imports?: { service: { subject: string } }[]; exports?: { service: string; accounts: string[] }[] }
  >;
  assert.deepEqual(Object.keys(accounts), [mainAccount, clusterAccount, systemAccount, "STORE_w1", "STORE_w2"]);
  const main = accounts[mainAccount] ?? assert.fail();
  assert.deepEqual(
    main.users.map(({ nkey, permissions }) => [nkey, permissions !== undefined]),
    [
      ["UG", false],
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
