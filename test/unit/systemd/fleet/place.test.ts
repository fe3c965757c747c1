import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { clusterAccount, mainAccount, systemAccount } from "../../../../shared/bus/permissions.ts";
import { loadConfig } from "../../../../shared/config.ts";
import type { Instance } from "../../../../systemd/base/instance.ts";
import { pathsOf } from "../../../../systemd/base/instance.ts";
import { memberOf, newNode, nodeText } from "../../../../systemd/cluster/identity.ts";
import { refuseToLeave } from "../../../../systemd/cluster/leaving.ts";
import { placeOf } from "../../../../systemd/cluster/place.ts";
import { copiesFor } from "../../../../systemd/cluster/replicas.ts";
import type { Member, NatsMember } from "../../../../systemd/fleet/members.ts";
import { configurationOf } from "../../../../systemd/supervisor/nats-configuration.ts";
import { preparedInstance } from "../../../helpers/prepare.ts";

const authority = { certificate: "PEM\n", key: "KEY\n" };
const first = newNode(authority, []);
const second = newNode(authority, ["nats://10.0.0.1:4223"]);
const third = newNode(authority, ["nats://10.0.0.1:4223"]);
const fingerprint = "a".repeat(64);
const at = (number: number) => ({ place: { host: `10.0.0.${number}`, port: 4223, clusterPort: 4224, fingerprint } });
const members = (state: NatsMember["state"]): Member[] => [first, second, third].map((node, index) => ({ ...memberOf(node, state), ...at(index + 1) }));

/** A machine with this node, in a folder of its own. */
async function machine(node: typeof first, use: (instance: Instance) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "sandgate-place-"));
  try {
    const config = loadConfig({ SANDGATE_DATA_DIR: dir, SANDGATE_NATS_HOST: "10.0.0.9", SANDGATE_NATS_PORT: "4223" });
    const instance = { ...(await preparedInstance()), config, paths: pathsOf(config) };
    for (const folder of [dirname(instance.paths.natsCluster), instance.paths.secrets]) mkdirSync(folder, { recursive: true });
    writeFileSync(instance.paths.natsCluster, nodeText(node));
    await use(instance);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

test("the first machine goes on alone until it is a node, and the others wait, then start, before anybody uses them", async () => {
  const own = "nats://10.0.0.9:4223";
  await machine(first, async (instance) => {
    for (const state of ["waiting", "starting"] as const) {
      const { mode, servers } = (await placeOf(instance, members(state))) ?? {};
      assert.deepEqual([mode, servers], ["alone", [own]]);
    }
    const { mode, servers } = (await placeOf(instance, members("active"))) ?? {};
    assert.deepEqual([mode, servers], ["clustered", [own, "nats://10.0.0.2:4223", "nats://10.0.0.3:4223"]]);
  });
  await machine(second, async (instance) => {
    for (const [state, wanted] of [
      ["waiting", "waiting"],
      ["starting", "clustered"],
    ] as const) {
      const { mode, servers } = (await placeOf(instance, members(state))) ?? {};
      assert.deepEqual([mode, servers], [wanted, second.servers]);
    }
    assert.equal((await placeOf(instance, members("active")))?.servers[0], own);
    assert.equal((await placeOf(instance, []))?.mode, "waiting", "before it knows anything");
  });
});

test("a node talks to the nodes of the list alone, over TLS in both directions, and to all of them", async () => {
  await machine(second, async (instance) => {
    const list = members("active");
    const place = await placeOf(instance, list);
    assert.ok(place);
    const conf = JSON.parse(await configurationOf(instance, { workerIds: [], port: 4223, members: list, place }));
    assert.equal(conf.server_name, second.id);
    assert.deepEqual(
      conf.cluster.routes,
      [1, 2, 3].map((number) => `nats://10.0.0.${number}:4224`),
    );
    const { verify, ca_file, pinned_certs } = conf.cluster.tls;
    assert.deepEqual([verify, ca_file, pinned_certs], [true, join(instance.paths.secrets, "nats.crt"), [fingerprint, fingerprint, fingerprint]]);
    assert.equal(conf.client_advertise, "10.0.0.2:4223");
    const { [clusterAccount]: cluster, [systemAccount]: system, [mainAccount]: main } = conf.accounts;
    assert.equal(conf.system_account, systemAccount);
    const nodes = list.filter((member): member is NatsMember => member.role === "nats");
    const keysOf = ({ users }: { users: { nkey: string }[] }): string[] => users.map(({ nkey }) => nkey).sort();
    assert.deepEqual(keysOf(cluster), nodes.map(({ nkey }) => nkey).sort());
    assert.deepEqual(keysOf(system), nodes.map(({ systemNkey }) => systemNkey).sort());
    assert.equal(
      keysOf(main).some((nkey) => [...keysOf(cluster), ...keysOf(system)].includes(nkey)),
      false,
    );
    const without = await placeOf(instance, list.slice(0, 2));
    assert.ok(without);
    assert.equal(
      JSON.parse(await configurationOf(instance, { workerIds: [], port: 4223, members: list.slice(0, 2), place: without })).cluster.routes.length,
      2,
    );
  });
});

test("what is stored has three copies with three servers and five with five, and as many as before with fewer", () => {
  assert.deepEqual([1, 2, 3, 4, 5, 7].map(copiesFor), [undefined, undefined, 3, 3, 5, 5]);
});

test("the last two nodes cannot be taken apart, and no machine takes itself out", () => {
  const list = members("active");
  refuseToLeave(first, second.id, list);
  assert.throws(() => refuseToLeave(first, first.id, list), /on another one/);
  assert.throws(() => refuseToLeave(first, second.id, list.slice(0, 2)), /Let another machine join first/);
  refuseToLeave(first, second.id, members("waiting").slice(0, 2));
  refuseToLeave(first, "wk_1", list.slice(0, 2));
});
