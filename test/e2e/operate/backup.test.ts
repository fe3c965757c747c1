/** A backup of an installation that is in use, and what a restore makes of it once the machine is lost. */
import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { Sandgate } from "../../../shared/client/index.ts";
import { isRunning, signalProcess } from "../../../systemd/supervisor/processes.ts";
import { AdminCommand, type Outcome } from "../../helpers/admin-command.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { NpmStart, startMs } from "../../helpers/npm-start.ts";
import { until } from "../../helpers/until.ts";
import { Visitor } from "../../helpers/visitor.ts";

interface Backup {
  readonly dir: string;
  readonly snapshots_without_files: readonly string[];
}

const folder = fixture(temporaryFolder("backups")).path;
const npm = await fixture(NpmStart.prepare("backup"));
const command = fixture(new AdminCommand({ url: npm.url, apiKey: "none" }));
const admin = (...args: string[]): Promise<Outcome> => command.runWith(npm.settings, ...args);
const { data } = npm.instance.paths;
const secret = join(folder, "elsewhere/key");
// Hashing a password takes most of the time of a log-in.
const settings = `# of this installation\nSANDGATE_TEST_PASSWORD_COST=8\nSANDGATE_BOOTSTRAP_API_KEY_FILE=${secret}\n`;
mkdirSync(dirname(secret));
writeFileSync(secret, "sg_chosen_by_the_operator\n");
chownSync(secret, process.getuid?.() ?? 0, npm.instance.accounts.gateway.gid);
chmodSync(secret, 0o640);
writeFileSync(join(data, "sandgate.env"), settings, { mode: 0o600 });
let supervisor = await npm.start();
const operator = (): Sandgate => new Sandgate({ baseUrl: npm.url, apiKey: npm.apiKey });
const visitor = new Visitor(npm.url);
let backups = 0;

/** @throws {Error} if it fails */
async function backUp(): Promise<Backup> {
  const { exitCode, stdout, stderr } = await admin("backup", "--json", join(folder, `backup-${++backups}`));
  assert.equal(exitCode, 0, stderr);
  return JSON.parse(stdout) as Backup;
}

/** What is left of commands that failed. */
const leftovers = (): string[] => [folder, dirname(data)].flatMap((dir) => readdirSync(dir).filter((name) => /\.(partial|restoring)$/.test(name)));

/** A copy of a backup, for a test to spoil. */
function copyOf({ dir }: Backup): string {
  const copy = join(folder, `copy-${++backups}`);
  cpSync(dir, copy, { recursive: true });
  return copy;
}

const made = await (async () => {
  const account = (await visitor.signUp()).body.account;
  await operator().admin.accounts.change(account.id, { limits: { requests_per_minute: 5_000, sandboxes: 7 } });
  const key = (await visitor.call<{ id: string; key: string }>("POST", "/v1/account/keys", { name: "ci" })).body;
  const client = new Sandgate({ baseUrl: npm.url, apiKey: key.key });
  const sandbox = await client.sandboxes.create({ image: "default", name: "lost" });
  await sandbox.upload("/root/kept", "as it was");
  const snapshot = await sandbox.snapshot({ name: "kept" });
  return { account, key, client, sandbox, snapshot };
})();

/** The backup that has the files of the snapshot. */
let whole: Backup;

test("a backup is made while calls go on, and is for its owner alone", async () => {
  const { client, sandbox } = made;
  await until("the files of the snapshot are in a backup", async () => (await backUp()).snapshots_without_files.length === 0, startMs);
  let calls = 0;
  let isOver = false;
  const load = Array.from({ length: 3 }, async (_, each) => {
    for (let own = 0; !isOver; own++, calls++) {
      await sandbox.upload(`/root/load-${each}`, String(own));
      assert.equal((await sandbox.execute(`cat /root/load-${each}`)).stdout, String(own));
    }
  });
  const loaded = Promise.all(load);
  loaded.catch(() => {});
  try {
    await until("calls go on", () => calls > 0);
    const before = calls;
    whole = await backUp();
    assert.ok(calls > before);
  } finally {
    isOver = true;
  }
  await loaded;
  for (const entry of [".", ...readdirSync(whole.dir, { recursive: true, encoding: "utf8" })]) {
    assert.equal(statSync(join(whole.dir, entry)).mode & 0o077, 0, `others may do something with ${entry}`);
  }
  assert.equal((await client.sandboxes.get(sandbox.id)).info.status, "running");
  const newest = (await operator().admin.audit.list({ limit: 1 })[Symbol.asyncIterator]().next()).value;
  assert.deepEqual([newest?.action, newest?.by, newest?.account_id, newest?.outcome], ["adminBackUp", "machine", null, "ok"]);
  assert.deepEqual(leftovers(), []);
});

test("a backup needs a folder of its own, and one that fails leaves nothing", async () => {
  const full = join(folder, "full");
  mkdirSync(full);
  writeFileSync(join(full, "mine"), "");
  for (const [dir, message] of [
    [full, /is not empty/],
    [join(full, "mine"), /is not a folder/],
    [whole.dir, /is not empty/],
  ] as const) {
    const { exitCode, stderr } = await admin("backup", dir);
    assert.equal(exitCode, 1);
    assert.match(stderr, message);
  }
  assert.deepEqual(readdirSync(full), ["mine"]);
  const elsewhere = await command.runWith({ ...npm.settings, SANDGATE_DATA_DIR: join(folder, "nothing") }, "backup", join(folder, "of-nothing"));
  assert.match(elsewhere.stderr, /no installation in/);
  assert.deepEqual(leftovers(), []);
});

test("a restore is refused while Sandgate runs, and over an installation with data", async () => {
  const running = await admin("restore", whole.dir, "--replace", "--yes");
  assert.equal(running.exitCode, 1);
  assert.match(running.stderr, /Stop it first/);
  await stop();
  const stopped = await admin("backup", join(folder, "of-stopped"));
  assert.match(stopped.stderr, /does not answer|has been started/);
  const present = await admin("restore", whole.dir);
  assert.equal(present.exitCode, 1);
  assert.match(present.stderr, /There is an installation already: .*--replace/);
  assert.deepEqual(leftovers(), []);
});

test("what is no whole backup is refused by the name of the file, before anything changes", async () => {
  const before = readdirSync(data).sort();
  const archive = "streams/OBJ_sandgate_layers.snapshot";
  const spoiled: [RegExp, (dir: string) => void][] = [
    [/OBJ_sandgate_layers\.snapshot has \d+ bytes, not \d+/, (dir) => truncateSync(join(dir, archive), 10)],
    [/worker\/lmdb\/data\.mdb has \d+ bytes/, (dir) => appendFileSync(join(dir, "data/worker/lmdb/data.mdb"), "x")],
    [
      /api-key is not as it was written/,
      (dir) => writeFileSync(join(dir, "data/api-key"), readFileSync(join(dir, "data/api-key"), "utf8").replace(/../, "xx")),
    ],
    [/KV_sandgate_keys\.snapshot is missing/, (dir) => rmSync(join(dir, "streams/KV_sandgate_keys.snapshot"))],
    [/manifest\.json is damaged/, (dir) => truncateSync(join(dir, "manifest.json"), 30)],
    [/no backup of Sandgate/, (dir) => rmSync(join(dir, "manifest.json"))],
    [/newer version of Sandgate \(format 2/, (dir) => change(dir, (manifest) => ({ ...manifest, format: 2 }))],
    [/outside of the backup/, (dir) => change(dir, (manifest) => ({ ...manifest, files: [{ name: "../x", bytes: 0, sha256: "" }] }))],
  ];
  for (const [message, spoil] of spoiled) {
    const copy = copyOf(whole);
    spoil(copy);
    const { exitCode, stderr } = await admin("restore", copy, "--replace", "--yes");
    assert.equal(exitCode, 1);
    assert.match(stderr, message);
    rmSync(copy, { recursive: true });
  }
  assert.deepEqual(readdirSync(data).sort(), before);
  assert.deepEqual(leftovers(), []);
});

function change(dir: string, edit: (manifest: Record<string, unknown>) => object): void {
  const file = join(dir, "manifest.json");
  writeFileSync(file, JSON.stringify(edit(JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>)));
}

test("on a machine that has lost everything, all that was acknowledged before the backup is there again", async () => {
  const operatorsKey = npm.apiKey;
  await npm.destroy();
  rmSync(dirname(secret), { recursive: true });
  assert.ok(!existsSync(data));
  const { exitCode, stdout, stderr } = await admin("restore", "--json", whole.dir);
  assert.equal(exitCode, 0, stderr);
  const result = JSON.parse(stdout) as { data_dir: string; replaced: string[]; sandboxes_without_files: number };
  assert.deepEqual([result.data_dir, result.replaced, result.sandboxes_without_files], [data, [], 1]);
  assert.deepEqual(leftovers(), []);

  assert.equal(readFileSync(join(data, "sandgate.env"), "utf8"), settings);
  assert.equal(readFileSync(secret, "utf8"), "sg_chosen_by_the_operator\n");
  const { mode, gid } = statSync(secret);
  assert.deepEqual([mode & 0o777, gid], [0o640, npm.instance.accounts.gateway.gid]);
  supervisor = await npm.start();
  assert.deepEqual([npm.apiKey, operatorsKey], ["sg_chosen_by_the_operator", "sg_chosen_by_the_operator"]);
  const account = await operator().admin.accounts.get(made.account.id);
  assert.deepEqual([account.email, account.limits.requests_per_minute, account.limits.sandboxes], [visitor.email, 5_000, 7]);
  assert.deepEqual(
    account.api_keys.map(({ id }) => id),
    [made.key.id],
  );
  assert.deepEqual(await auditOf(made.account.id), ["signUp", "logIn", "adminChangeAccount", "createApiKey"]);
  const { client } = made;
  const lost = await client.sandboxes.get(made.sandbox.id);
  assert.equal(lost.info.status, "error");
  assert.match(lost.info.error ?? "", /restored from a backup of/);
  await lost.delete();
  const restored = await client.snapshots.restore(made.snapshot.id);
  assert.equal((await restored.execute("cat /root/kept")).stdout, "as it was");
  assert.equal((await visitor.call("GET", "/v1/account")).status, 401, "browsers log in again");
  assert.equal((await visitor.logIn()).status, 200);
});

/** What the audit record has of an account, oldest first. */
async function auditOf(account_id: string): Promise<string[]> {
  const actions: string[] = [];
  for await (const { action } of operator().admin.audit.list({ account_id })) actions.unshift(action);
  return actions;
}

async function stop(): Promise<void> {
  signalProcess(supervisor, "SIGTERM");
  await until("everything has stopped", () => !isRunning(supervisor), startMs);
}

/** Restores a backup in place of the present installation. @returns where that is now */
async function replaceBy({ dir }: Backup): Promise<string> {
  const { exitCode, stdout, stderr } = await admin("restore", "--json", "--replace", "--yes", dir);
  assert.equal(exitCode, 0, stderr);
  return (JSON.parse(stdout) as { replaced: string[] }).replaced[0] ?? "";
}

test("with --replace, the present installation is moved aside and can be had again", async () => {
  const later = await made.client.sandboxes.create({ image: "default", name: "later" });
  await stop();
  const aside = await replaceBy(whole);
  assert.match(basename(aside), new RegExp(`^${basename(data)}\\.replaced-`));
  try {
    assert.ok(existsSync(join(aside, "worker/lmdb/data.mdb")) && existsSync(join(aside, "volume.img")));
    supervisor = await npm.start();
    await assert.rejects(made.client.sandboxes.get(later.id), /not found/i);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
});

test("a snapshot whose files only its worker has is named by the backup, and gone after a restore", async () => {
  await stop();
  appendFileSync(join(data, "sandgate.env"), "SANDGATE_SNAPSHOT_ARCHIVE=false\n");
  supervisor = await npm.start();
  const { client } = made;
  const local = await (await client.sandboxes.create({ image: "default" })).snapshot();
  const backup = await backUp();
  assert.deepEqual(backup.snapshots_without_files, [local.id]);
  await stop();
  const aside = await replaceBy(backup);
  try {
    supervisor = await npm.start();
    await assert.rejects(client.snapshots.get(local.id), /not found/i);
    assert.equal((await client.snapshots.get(made.snapshot.id)).id, made.snapshot.id);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
});
