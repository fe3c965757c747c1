import assert from "node:assert/strict";
import { test } from "node:test";
import { choiceOf, refuseAlone, refuseOtherChoice } from "../../../../systemd/fleet/joining.ts";
import { decodeToken, encodeToken, type Token } from "../../../../systemd/fleet/token.ts";

const worker: Token = { version: 1, role: "worker", id: "wk_1", url: "nats://10.0.0.1:4223", certificate: "PEM\n", seeds: ["SU1", "SU2"] };
const gateway: Token = { ...worker, role: "gateway", id: "gw_1", seeds: ["SU3"], apiKey: "sg_key" };

test("a token comes back as it was, and a damaged one is refused", () => {
  assert.deepEqual(decodeToken(`${encodeToken(gateway)}\n`), gateway);
  for (const text of ["", "sgj_", "nats://10.0.0.1", encodeToken(worker).slice(0, -9), `sgj_${Buffer.from('{"version":2}').toString("base64url")}`]) {
    assert.throws(() => decodeToken(text), /whole word/, text);
  }
});

test("a worker's token becomes settings, and files that only root reads unless they are public", () => {
  const { settings, files } = choiceOf({ join: encodeToken(worker) });
  assert.deepEqual(settings, {
    SANDGATE_ROLE: "worker",
    SANDGATE_NATS_URL: "nats://10.0.0.1:4223",
    SANDGATE_NATS_CA: "/etc/sandgate/nats.crt",
    SANDGATE_NATS_NKEY_FILE: "/etc/sandgate/nats.nkey",
    SANDGATE_WORKER_ID: "wk_1",
  });
  assert.deepEqual(files, [
    { path: "/etc/sandgate/nats.crt", text: "PEM\n", mode: 0o644 },
    { path: "/etc/sandgate/nats.nkey", text: "SU1\nSU2\n", mode: 0o600 },
  ]);
});

test("the key of images of memory comes to a file of root's that no setting names", () => {
  for (const token of [worker, { ...worker, role: "all", authorityKey: "KEY" } as const]) {
    const { settings, files } = choiceOf({ join: encodeToken({ ...token, memoryKey: "SECRET" }) });
    assert.deepEqual(files.at(-1), { path: "/var/lib/sandgate/supervisor/memory-key", text: "SECRET\n", mode: 0o600 });
    assert.doesNotMatch(JSON.stringify(settings), /SECRET|memory-key/);
  }
});

test("a gateway's token brings the operator's key, and no name of a worker", () => {
  const { settings, files } = choiceOf({ role: "gateway", join: encodeToken(gateway) });
  assert.equal(settings.SANDGATE_BOOTSTRAP_API_KEY_FILE, "/etc/sandgate/api-key");
  assert.equal(settings.SANDGATE_WORKER_ID, undefined);
  assert.deepEqual(files.at(-1), { path: "/etc/sandgate/api-key", text: "sg_key\n", mode: 0o600 });
});

test("a token for a machine with a NATS server brings what makes it a node, readable by root alone", () => {
  const all: Token = { ...worker, role: "all", id: "nats_1", url: "nats://10.0.0.1:4223,nats://10.0.0.2:4223", authorityKey: "KEY", apiKey: "sg_key" };
  const { settings, files, node } = choiceOf({ join: encodeToken(all) });
  assert.deepEqual(settings, { SANDGATE_ROLE: "all", SANDGATE_BOOTSTRAP_API_KEY_FILE: "/etc/sandgate/api-key" });
  assert.deepEqual(
    files.map(({ path, mode }) => [path, mode]),
    [
      ["/var/lib/sandgate/supervisor/nats-cluster.json", 0o600],
      ["/etc/sandgate/api-key", 0o600],
    ],
  );
  const servers = ["nats://10.0.0.1:4223", "nats://10.0.0.2:4223"];
  assert.deepEqual(JSON.parse(files[0]?.text ?? ""), { id: "nats_1", authority: { certificate: "PEM\n", key: "KEY" }, seeds: ["SU1", "SU2"], servers });
  assert.deepEqual(node, { id: "nats_1", servers });
  const { apiKey: _, ...plain } = all;
  assert.deepEqual(choiceOf({ join: encodeToken({ ...plain, role: "nats" }) }).settings, { SANDGATE_ROLE: "nats" });
});

test("options that cannot be meant are refused", () => {
  assert.throws(() => choiceOf({ role: "queen" }), /all, nats, gateway, worker/);
  assert.throws(() => choiceOf({ role: "gateway", join: encodeToken(worker) }), /for a worker/);
  assert.throws(() => refuseAlone({ SANDGATE_ROLE: "worker" }), /join-token --role worker/);
  refuseAlone({ SANDGATE_ROLE: "worker", SANDGATE_NATS_URL: "nats://nats.example:4222" });
  refuseAlone({ SANDGATE_ROLE: "nats" });
});

test("a machine that is set up can be installed again as it is, and as nothing else", () => {
  const present = { SANDGATE_ROLE: "worker", SANDGATE_WORKER_ID: "wk_1" };
  refuseOtherChoice(choiceOf({}), present);
  refuseOtherChoice(choiceOf({ role: "worker" }), present);
  refuseOtherChoice(choiceOf({ role: "all" }), {});
  refuseOtherChoice(choiceOf({ join: encodeToken(worker) }), choiceOf({ join: encodeToken(worker) }).settings);
  assert.throws(() => refuseOtherChoice(choiceOf({ role: "gateway" }), present), /SANDGATE_ROLE=worker/);
  assert.throws(() => refuseOtherChoice(choiceOf({ role: "nats" }), {}), /no SANDGATE_ROLE/);
  assert.throws(() => refuseOtherChoice(choiceOf({ join: encodeToken({ ...worker, id: "wk_2" }) }), choiceOf({ join: encodeToken(worker) }).settings), /wk_1/);
});
