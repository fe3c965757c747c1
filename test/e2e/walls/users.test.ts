/** The users of the parts: who has taken one part over tries for the others, and for what only the operator has. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { loadConfig, operatorSocketOf } from "../../../shared/config.ts";
import { instanceOf, type PartName } from "../../../systemd/base/instance.ts";
import { findAccounts } from "../../../systemd/setup/account.ts";
import { AdminCommand } from "../../helpers/admin-command.ts";
import { Api } from "../../helpers/api.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { podmanSockets } from "../../helpers/podman-sockets.ts";
import { testPort } from "../../helpers/ports.ts";
import { preparedInstance } from "../../helpers/prepare.ts";
import { expectRefused, type Outcome } from "../../helpers/probes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { tryAs } from "../../helpers/users.ts";

const parts: readonly PartName[] = ["worker", "gateway", "nats"];
const nameOf: Readonly<Record<PartName, string>> = { worker: "the worker", gateway: "the gateway", nats: "NATS" };
const othersOf = (part: PartName): PartName[] => parts.filter((other) => other !== part);
const stack = sharedStack();
const api = new Api(stack);
const socket = operatorSocketOf(stack.dataDir);

const config = loadConfig({ ...process.env, SANDGATE_DATA_DIR: stack.dataDir });
const accounts = await findAccounts(config);
const { paths, home } = instanceOf(config, accounts);

const call = (name: string, ...args: unknown[]): string => `${name}(${args.map((value) => JSON.stringify(value)).join(", ")})`;
const read = (path: string): string => call("fs.readFileSync", path, "utf8");
const connect = (path: string): string =>
  `new Promise((resolve, reject) => net.connect(${JSON.stringify(path)}, () => resolve("connected")).on("error", reject))`;

/** Tries everything as one user; fails unless each was refused with one of these errors. */
async function expectAllRefused(user: PartName, attempts: readonly string[], ...errors: readonly string[]): Promise<void> {
  const outcomes: Record<string, Outcome> = await tryAs(accounts[user], Object.fromEntries(attempts.map((attempt) => [attempt, attempt])));
  for (const attempt of attempts) expectRefused(outcomes[attempt], ...errors);
}

/** The parts and what they have started, with the text of a file of /proc. What tests start as these users has the tests' environment. */
function processes(file: string): { pid: number; text: string }[] {
  const uids = parts.map((part) => accounts[part].uid);
  const isOfTests = (pid: number): boolean => readFileSync(`/proc/${pid}/environ`, "latin1").includes("TEST_STACK=");
  return readdirSync("/proc").flatMap((entry) => {
    try {
      const pid = Number(entry);
      return pid && uids.includes(statSync(`/proc/${pid}`).uid) && !isOfTests(pid) ? [{ pid, text: readFileSync(`/proc/${pid}/${file}`, "latin1") }] : [];
    } catch {
      return []; // it has ended meanwhile
    }
  });
}

const asRoot = { skip: process.getuid?.() !== 0 && "the parts have users of their own only where root starts them" };
for (const attacker of parts) {
  const who = `${nameOf[attacker]}'s user`;
  const others = othersOf(attacker);
  const both = others.map((other) => nameOf[other]).join(" and ");
  const ofOthers = (attempt: (pid: number) => string): string[] => others.map((other) => attempt(stack.pids[other]));

  test(`${who} reads secrets from the environments of ${both}`, asRoot, () =>
    expectAllRefused(
      attacker,
      ofOthers((pid) => read(`/proc/${pid}/environ`)),
      "EACCES",
    ),
  );

  test(`${who} reads the memory of ${both}`, asRoot, () =>
    expectAllRefused(
      attacker,
      ofOthers((pid) => call("memoryOf", pid)),
      "EACCES",
    ),
  );

  test(`${who} attaches to ${both} as a debugger`, asRoot, () =>
    expectAllRefused(
      attacker,
      ofOthers((pid) => call("attach", pid)),
      "EPERM",
    ),
  );

  test(`${who} sends signals to ${both}`, asRoot, () =>
    expectAllRefused(
      attacker,
      ofOthers((pid) => call("process.kill", pid, 0)),
      "EPERM",
    ),
  );

  test(`${who} uses the open files of ${both}`, asRoot, () =>
    expectAllRefused(
      attacker,
      ofOthers((pid) => call("fs.readdirSync", `/proc/${pid}/fd`)),
      "EACCES",
    ),
  );

  test(`${who} reads the secrets of others, the operator's key and what the supervisor keeps`, asRoot, async () => {
    const secrets = secretFilesOf((owner) => owner !== attacker);
    assert.ok(secrets.length > 0);
    const conf = attacker === "nats" ? [] : [paths.natsConf];
    const files = [...secrets, ...conf, paths.apiKey].map(read);
    const folders = [paths.logs, paths.supervisor, paths.secrets, paths.data].map((path) => call("fs.readdirSync", path));
    await expectAllRefused(attacker, [...files, ...folders], "EACCES");
  });

  test(`${who} reads and writes in the folders of ${both}`, asRoot, async () => {
    const folders = { worker: [join(paths.data, "worker"), home], gateway: [paths.gateway], nats: [paths.nats] };
    const foreign = others.flatMap((other) => folders[other]);
    const attempts = [...foreign, paths.data, paths.secrets].map((folder) => call("fs.writeFileSync", join(folder, "planted"), ""));
    await expectAllRefused(attacker, [...foreign.map((folder) => call("fs.readdirSync", folder)), ...attempts], "EACCES");
  });

  test(`${who} swaps the folders of the parts for others`, asRoot, () =>
    expectAllRefused(
      attacker,
      [paths.gateway, paths.nats, paths.secrets, join(paths.data, "worker")].map((path) => call("fs.renameSync", path, `${path}.away`)),
      "EACCES",
    ),
  );
}

/** The files of secrets by the part whose group may read them; the certificate is none, all read it. */
function secretFilesOf(isWanted: (owner: PartName | undefined) => boolean): string[] {
  const files = readdirSync(paths.secrets).map((file) => join(paths.secrets, file));
  const closed = files.filter((file) => (statSync(file).mode & 0o004) === 0);
  return closed.filter((file) => isWanted(parts.find((part) => accounts[part].gid === statSync(file).gid)));
}

for (const attacker of othersOf("gateway")) {
  const who = `${nameOf[attacker]}'s user`;
  test(`${who} listens beside the gateway on its port`, asRoot, () => {
    const port = Number(new URL(stack.url).port);
    const listen = ["127.0.0.1", "0.0.0.0"].flatMap((host) => [true, false].map((reusePort) => call("listen", { host, port, reusePort })));
    return expectAllRefused(attacker, listen, "EADDRINUSE");
  });

  test(`${who} listens on the operator's socket, calls on it, removes or replaces it`, asRoot, () =>
    expectAllRefused(
      attacker,
      [
        call("listen", socket),
        call("fs.unlinkSync", socket),
        call("fs.renameSync", socket, `${socket}.away`),
        call("fs.symlinkSync", "/tmp/elsewhere", `${socket}.new`),
        connect(socket),
      ],
      "EACCES",
    ),
  );
}

for (const attacker of parts.filter((part) => part !== "worker")) {
  test(`${nameOf[attacker]}'s user reads the images and files of sandboxes`, asRoot, async () => {
    const { storageDir } = loadConfig();
    await expectAllRefused(attacker, [call("fs.readdirSync", storageDir), call("fs.readdirSync", join(storageDir, "storage"))], "EACCES");
  });
}

for (const attacker of parts.filter((part) => part !== "worker")) {
  test(`${nameOf[attacker]}'s user calls Podman's service`, asRoot, async () => {
    // It runs for a while after this.
    await api.delete(await api.create());
    const sockets = podmanSockets((await preparedInstance()).runtimeDir);
    assert.ok(sockets.length > 0);
    const attempts = sockets.flatMap((path) => [call("fs.readdirSync", dirname(path)), connect(path), call("fs.unlinkSync", path)]);
    await expectAllRefused(attacker, attempts, "EACCES");
  });
}

test("finds a secret in the environment or the command line of any process of the parts, or of what they have started", asRoot, () => {
  const files = [...secretFilesOf(() => true), paths.apiKey];
  const secrets = files.flatMap((file) =>
    readFileSync(file, "latin1")
      .split(/\s+/)
      .filter((word) => word.length > 15),
  );
  assert.ok(secrets.includes(stack.apiKey));
  for (const file of ["environ", "cmdline"]) {
    const all = processes(file);
    for (const part of parts) assert.ok(all.some(({ pid, text }) => pid === stack.pids[part] && text.length > 0));
    for (const { pid, text } of all) assert.ok(!secrets.some((secret) => text.includes(secret)), `${file} of process ${pid}`);
  }
});

test("control: each part's user reads the secrets that are its own", asRoot, async () => {
  for (const part of ["worker", "gateway"] as const) {
    const own = secretFilesOf((owner) => owner === part);
    assert.ok(own.length > 0);
    const outcomes = await tryAs(accounts[part], Object.fromEntries(own.map((file) => [file, read(file)])));
    for (const file of own) assert.ok("done" in (outcomes[file] ?? {}), JSON.stringify(outcomes[file]));
  }
});

const admin = fixture(new AdminCommand(stack));

/** Listens; what it returns counts who has come. */
async function impostor(address: number | string): Promise<() => number> {
  let visitors = 0;
  const server = createServer((connection) => {
    visitors++;
    connection.destroy();
  });
  atEnd(() => server.close());
  await new Promise<void>((resolve) => server.listen(address, resolve));
  return () => visitors;
}

/** A data directory with the key, whose folder for the gateway's socket has this mode. */
function dataDir(mode: number): string {
  const data = mkdtempSync(join(admin.folder, "data-"));
  for (const folder of [admin.folder, data]) chmodSync(folder, 0o711);
  writeFileSync(join(data, "api-key"), stack.apiKey);
  mkdirSync(join(data, "gateway"));
  chmodSync(join(data, "gateway"), mode);
  return data;
}

test("gives the operator's key to an impostor on the gateway's port", async () => {
  const port = await testPort();
  const visitors = await impostor(port);
  const { exitCode, stdout, stderr } = await admin.runWith({ SANDGATE_DATA_DIR: stack.dataDir, SANDGATE_PORT: String(port) }, "workers");
  assert.deepEqual([exitCode, stderr, visitors()], [0, "", 0]);
  assert.match(stdout, /^ID +STATUS/);
  const stopped = await admin.runWith({ SANDGATE_DATA_DIR: dataDir(0o700), SANDGATE_PORT: String(port) }, "workers");
  assert.match(stopped.stderr, /no gateway has been started there/);
  assert.deepEqual([stopped.exitCode, visitors()], [1, 0]);
});

test("gives the operator's key to whoever listens in a folder that others can write to", async () => {
  const data = dataDir(0o777);
  const visitors = await impostor(operatorSocketOf(data));
  const { exitCode, stderr } = await admin.runWith({ SANDGATE_DATA_DIR: data }, "workers");
  assert.match(stderr, /other users can listen in .*, so no key is sent there/);
  assert.deepEqual([exitCode, visitors()], [1, 0]);
});

test("is led by a link of the gateway's user to a socket of root's", asRoot, async () => {
  using folder = temporaryFolder("closed");
  const closed = folder.path;
  const target = join(closed, "socket");
  const visitors = await impostor(target);
  const data = dataDir(0o700);
  chownSync(join(data, "gateway"), accounts.gateway.uid, accounts.gateway.gid);
  symlinkSync(target, operatorSocketOf(data));
  const { exitCode, stderr } = await admin.runWith({ SANDGATE_DATA_DIR: data }, "workers");
  assert.match(stderr, /no answer from .*operator\.sock/);
  assert.deepEqual([exitCode, visitors()], [1, 0]);
});
