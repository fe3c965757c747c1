/** Files of the worker's are shown with the ids of a sandbox; what a hostile worker tries to make of that (systemd/helper/THREATS.md). */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { Reply } from "../../../../shared/privileged.ts";
import { idsPerSandbox } from "../../../../shared/privileged.ts";
import { mountAt } from "../../../../shared/util/mounts.ts";
import { asAccount } from "../../../../systemd/base/as-account.ts";
import { searchPath } from "../../../../systemd/base/search-path.mjs";
import { type IdRange, idFiles, idRangesOf } from "../../../../systemd/base/subordinate-ids.ts";
import { serve } from "../../../../systemd/helper/serve.ts";
import { isVolume } from "../../../../systemd/volume/volume.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testInstance } from "../../../helpers/prepare.ts";
import { until } from "../../../helpers/until.ts";
import { TestVolume } from "../../../helpers/volume.ts";

const overflowId = 65_534;
const folder = fixture(temporaryFolder("ids", 0o711));
const instance = await testInstance(join(folder.path, "data"), {});
const { account } = instance;
const { found } = await fixture(TestVolume.make(instance, join(instance.paths.data, "one")));
const volume = isVolume(found) ? found : assert.fail(found.reason);
const [source, target] = [join(volume.dir, "source"), join(volume.dir, "target")];
for (const dir of [source, target]) mkdirSync(dir);
const [shared, own] = idRangesOf(account, idFiles.user) as [IdRange, IdRange];
const owners = { root: account.uid, user: shared.first + 4, last: shared.first + idsPerSandbox - 2, worker: shared.first + idsPerSandbox - 1, foreign: 0 };
for (const [name, uid] of Object.entries(owners)) {
  writeFileSync(join(source, name), name);
  chownSync(join(source, name), uid, account.gid);
}
for (const dir of [source, target]) chownSync(dir, account.uid, account.gid);

/** A process in namespaces of its own, as a worker is, with these folders open: 5, 6 and so on. */
class HostileWorker implements AsyncDisposable {
  readonly #process: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#process = child;
  }

  static async start(owner: { uid: number; gid: number }, dirs: readonly string[] = [source, target]): Promise<HostileWorker> {
    const opened = dirs.map((dir, index) => `exec ${index + 5}<${dir}; `).join("");
    const inner = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `${opened}echo ready; exec sleep 1000`];
    const [file = "", ...args] = asAccount(owner, inner);
    const child = spawn(file, args, { cwd: "/", env: { PATH: searchPath }, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (bytes: Buffer) => (said += bytes));
    await until("it is there", () => said.includes("ready"));
    return new HostileWorker(child);
  }

  get pid(): number {
    return this.#process.pid ?? assert.fail();
  }

  /** The user to whom a file belongs, as it sees the file. */
  ownerOf(path: string): number {
    return statSync(join(`/proc/${this.pid}/root`, path)).uid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await once(this.#process, "exit");
  }
}

/** What the helper of a worker says to a request. */
async function asked(pid: number, fields: { range?: number; source?: number; target?: number } = {}): Promise<string> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  serve(input, output, { volume, images: { dir: instance.paths.memory, floorBytes: 0, keyFile: "/nowhere/key" }, worker: { pid, account } });
  input.write(`${JSON.stringify({ id: 1, verb: "ids.map", range: 0, source: 5, target: 6, ...fields })}\n`);
  const line = await Promise.race([once(output, "data"), once(output, "close")]);
  input.destroy();
  const reply = JSON.parse(String(line[0] ?? '{"message":"ended"}')) as Reply;
  return "message" in reply ? reply.message : "done";
}

test("what a sandbox's users own on disk is theirs in its range, and nothing else is", async () => {
  for (const range of [0, 3]) {
    await using worker = await HostileWorker.start(account);
    assert.equal(await asked(worker.pid, { range }), "done");
    const first: number = own.first + range * idsPerSandbox;
    const seen = Object.fromEntries(Object.keys(owners).map((name) => [name, worker.ownerOf(join(target, name))]));
    assert.deepEqual(seen, { root: first, user: first + 5, last: first + idsPerSandbox - 1, worker: account.uid, foreign: overflowId });
  }
});

test("no file gives its owner's rights or is a device, and nobody else sees the mount", async () => {
  await using worker = await HostileWorker.start(account);
  assert.equal(await asked(worker.pid), "done");
  const options = mountAt(target, worker.pid)?.options ?? [];
  for (const option of ["nosuid", "nodev", "idmapped"]) assert.ok(options.includes(option), option);
  assert.equal(mountAt(target), undefined);
});

test("a folder of another user is not shown, nor is another covered", async () => {
  await using worker = await HostileWorker.start(account, [source, target, "/etc"]);
  assert.match(await asked(worker.pid, { source: 7 }), /descriptor 7 .*another user/);
  assert.match(await asked(worker.pid, { target: 7 }), /descriptor 7 .*another user/);
  assert.equal(mountAt("/etc", worker.pid), undefined);
});

test("what is no folder, or not open, is not shown", async () => {
  await using worker = await HostileWorker.start(account, [source, target, join(source, "root")]);
  assert.match(await asked(worker.pid, { source: 7 }), /descriptor 7: Not a directory/);
  assert.match(await asked(worker.pid, { source: 99 }), /descriptor 99: No such file/);
});

test("a range that the account does not have is nobody's", async () => {
  await using worker = await HostileWorker.start(account);
  assert.match(await asked(worker.pid, { range: 65_535 }), /no ids for range 65535/);
  for (const range of [-1, 65_536, 0.5]) assert.equal(await asked(worker.pid, { range }), "ended");
  assert.equal(mountAt(target, worker.pid)?.options.includes("idmapped") ?? false, false);
});

test("a process that is not in a namespace of the account is left alone: root's, and that of another user", async () => {
  assert.match(await asked(process.pid), /belongs to another user/);
  await using other = await HostileWorker.start({ uid: overflowId, gid: overflowId }, ["/", "/"]);
  assert.match(await asked(other.pid), /belongs to another user/);
});
