/** A machine that is destroyed, and a new one in its place: installed from nothing, with what a backup has. Another machine of the installation lives. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { programDir } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";
import { Network } from "./network.ts";

const network = await fixture(Network.start());
const place = { network, number: 1 };
const [first, further] = await Promise.all([fixture(Machine.start("first", place)), fixture(Machine.start("further", { network, number: 2 }))]);
const archive = join(fixture(temporaryFolder("destroyed")).path, "backup.tar");
const volume = `SANDGATE_VOLUME=${volumeDir}`;
await first.install([], [volume, "SANDGATE_HOST=0.0.0.0", `SANDGATE_NATS_HOST=${Network.address(1)}`]);
const token = (await first.run("sandgate-admin", "join-token")).trim().split(" ").at(-1) ?? "";
await further.install(["--join", token], [volume]);

const url = `http://${Network.address(1)}:8080`;
const key = (await first.key()).trim();
const client = new Client(
  (...argv) => network.run(...argv),
  url,
  async () => key,
);
const furtherWorker = /SANDGATE_WORKER_ID=(\S+)/.exec(await further.run("cat", "/etc/sandgate/sandgate.env"))?.[1] ?? "";

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/** A sandbox with a file, on the first machine or on the other. */
async function create(isThere: boolean): Promise<string> {
  return until("a sandbox on that machine", async () => {
    const id = await client.create();
    const { data } = await client.call<{ data: Shown[] }>(`/v1/admin/sandboxes?worker_id=${furtherWorker}`);
    if (data.some((one) => one.id === id) !== isThere) return undefined;
    await client.output(id, "echo kept > /root/kept");
    return id;
  });
}

test("a new machine takes the place of one that was destroyed, with all that a backup has", async (context) => {
  await until("the further worker", async () =>
    (await client.call<{ data: { id: string; present: boolean }[] }>("/v1/admin/workers")).data.some(({ id, present }) => id === furtherWorker && present),
  );
  const [lost, elsewhere] = [await create(false), await create(true)];
  const account = await client.call<{ id: string; email: string }>("/v1/admin/accounts", { email: "ada@example.com", limits: { sandboxes: 7 } });
  const [snapshot, other] = [
    await client.call<Shown>(`/v1/sandboxes/${lost}/snapshot`, { name: "of-the-lost" }),
    await client.call<Shown>(`/v1/sandboxes/${elsewhere}/snapshot`, { name: "of-the-other" }),
  ];
  type BackupResult = { snapshots_without_files: string[] };
  await until(
    "a backup with the files of the snapshots",
    async () => {
      await first.shell("rm -rf /root/backup");
      return (JSON.parse(await first.run("sandgate-admin", "backup", "--json", "/root/backup")) as BackupResult).snapshots_without_files.length === 0;
    },
    60_000,
  );
  // Snapshots of which only their worker has the files are lost with it.
  await first.shell("echo SANDGATE_SNAPSHOT_ARCHIVE=false >> /etc/sandgate/sandgate.env; systemctl restart sandgate-setup.service");
  await until("it runs again", async () => (await client.output(lost, "cat /root/kept")) === "kept\n", 60_000);
  const unarchived = await client.call<Shown>(`/v1/sandboxes/${lost}/snapshot`, { name: "not-archived" });
  await first.shell("rm -rf /root/backup; sandgate-admin backup /root/backup; tar -C /root -cf /var/tmp/backup.tar backup");
  first.take("backup.tar", archive);
  await first[Symbol.asyncDispose]();

  const second = await fixture(Machine.start("second", place));
  await second.shell(`tar -C /root -xf ${await second.give(archive)}`);
  const admin = ["env", "--chdir", programDir, `${programDir}/node_modules/.bin/node`, "systemd/admin.mjs"];
  assert.match(await second.run(...admin, "restore", "/root/backup"), /is as it was at/);
  assert.match(await second.install([]), /Sandgate runs on/);
  await until("the gateway", async () => (await client.call<Shown>(`/v1/sandboxes/${lost}`)).id === lost, 60_000);
  context.diagnostic(await second.shell("journalctl -t sandgate-worker -o cat | grep -c snapshot_lost || true"));

  assert.equal((await second.key()).trim(), key);
  const { email, limits } = await client.call<{ email: string; limits: { sandboxes: number } }>(`/v1/admin/accounts/${account.id}`);
  assert.deepEqual([email, limits.sandboxes], ["ada@example.com", 7]);
  const { data: audit } = await client.call<{ data: { action: string; target: string | null }[] }>("/v1/admin/audit?limit=1000");
  for (const [action, target] of [
    ["adminCreateAccount", account.id],
    ["adminLetMachineIn", furtherWorker],
    ["adminBackUp", null],
  ] as const)
    assert.ok(
      audit.some((entry) => entry.action === action && entry.target === target),
      `${action} is in the audit record`,
    );

  const shown = await client.call<Shown>(`/v1/sandboxes/${lost}`);
  assert.equal(shown.status, "error");
  assert.match(shown.error ?? "", /restored from a backup of/);
  const { error } = await client.call(`/v1/sandboxes/${lost}/execute`, { command: "true" });
  assert.ok(error, "it runs nothing");
  await client.delete(`/v1/sandboxes/${lost}/delete`);
  await until("the other machine's sandbox is as that has it", async () => (await client.output(elsewhere, "cat /root/kept")) === "kept\n", 60_000);
  for (const { id } of [snapshot, other]) {
    const restored = await client.call<Shown>(`/v1/snapshots/${id}/restore`, { wait_for_ready: true });
    assert.equal(await client.output(restored.id, "cat /root/kept"), "kept\n");
    await client.delete(`/v1/sandboxes/${restored.id}/delete`);
  }
  await until("the snapshot without files is gone", async () => (await client.call(`/v1/snapshots/${unarchived.id}`)).error?.code === "not_found");
  assert.equal(await client.output(await client.create(), "echo made"), "made\n");
  assert.equal(await second.shell("systemctl list-units --state=failed --no-legend 'sandgate*'"), "");
});
