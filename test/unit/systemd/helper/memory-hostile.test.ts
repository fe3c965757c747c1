/** What a hostile worker tries with sandboxes and images that it has made itself (systemd/helper/THREATS.md). CRIU itself is in test/host. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { idsPerSandbox } from "../../../../shared/privileged.ts";
import { attempt } from "../../../../shared/util/attempt.ts";
import { mountAt } from "../../../../shared/util/mounts.ts";
import { run } from "../../../../systemd/base/run.ts";
import { searchPath } from "../../../../systemd/base/search-path.mjs";
import { idFiles, idRangesOf } from "../../../../systemd/base/subordinate-ids.ts";
import { MemoryImages } from "../../../../systemd/helper/memory/images.ts";
import { isStill, sandboxProcess } from "../../../../systemd/helper/memory/owner.ts";
import { keyBytes } from "../../../../systemd/helper/memory/sealed.ts";
import { onStage } from "../../../../systemd/helper/memory/stage.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testInstance } from "../../../helpers/prepare.ts";
import { unifiedGroup } from "../../../helpers/unified-group.ts";
import { until } from "../../../helpers/until.ts";

const folder = fixture(temporaryFolder("hostile-memory", 0o711));
const { account } = await testInstance(join(folder.path, "data"), {});
const place = { dir: join(folder.path, "images"), floorBytes: 0, keyFile: join(folder.path, "key") };
writeFileSync(place.keyFile, `${randomBytes(keyBytes).toString("base64url")}\n`, { mode: 0o600 });
const images = new MemoryImages(place, { pid: process.pid, account });
const stageDir = join(folder.path, "stage");
await mkdir(stageDir);

/** The map of one range of the account's, as the kernel takes it. */
function mapOf(file: string, range: number): string {
  const own = idRangesOf(account, file)[1] ?? assert.fail(`no ranges in ${file}`);
  return `0 ${own.first + range * idsPerSandbox} ${idsPerSandbox}\n`;
}

/** The first process of something like a container: all that the helper knows of a sandbox is true of it. */
class Container implements AsyncDisposable {
  readonly pid: number;
  readonly #parent: ChildProcess;

  private constructor(parent: ChildProcess, pid: number) {
    this.#parent = parent;
    this.pid = pid;
  }

  /** @param before what starts it; nothing for as it is */
  static async start(range: number, namespaces: readonly string[] = ["--mount", "--net", "--uts"], before: readonly string[] = []): Promise<Container> {
    const [file = "", ...args] = [...before, "unshare", "--user", "--pid", "--fork", "--kill-child", ...namespaces, "sleep", "1000"];
    const parent = spawn(file, args, { cwd: "/", env: { PATH: searchPath }, stdio: ["ignore", "ignore", "inherit"] });
    const isFirst = (pid: number): boolean => attempt(() => readFileSync(`/proc/${pid}/comm`, "utf8")) === "sleep\n";
    const childOf = (pid = 0): number => Number(attempt(() => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")));
    const pid = await until("it is there", () => [childOf(parent.pid)].find((child) => child > 0 && isFirst(child)));
    writeFileSync(`/proc/${pid}/uid_map`, mapOf(idFiles.user, range));
    writeFileSync(`/proc/${pid}/gid_map`, mapOf(idFiles.group, range));
    return new Container(parent, pid);
  }

  /** Runs commands in it as its root. */
  shell(namespaces: readonly string[], script: string): Promise<string> {
    return run(["nsenter", "--target", String(this.pid), "--user", ...namespaces, "--", "sh", "-euc", script], { cwd: "/" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#parent, "exit");
    // Its parent waits for it.
    process.kill(this.pid, "SIGKILL");
    await ended;
  }
}

/** What a command sees that is started like CRIU. */
async function staged({ pid }: Container, paths: readonly string[], script = "true"): Promise<string> {
  await using group = unifiedGroup("stage");
  return await run([...onStage({ pid, dir: stageDir, group: group.path, paths }), "sh", "-euc", script, "sh", stageDir]);
}

test("mounts are taken only from a namespace of the container's own users", async () => {
  await using other = await Container.start(1);
  await using outside = await Container.start(0, ["--net"]);
  await using within = await Container.start(0, ["--net"], ["nsenter", "--target", String(other.pid), "--mount"]);
  for (const container of [outside, within]) {
    assert.equal(sandboxProcess(account, container.pid).pid, container.pid);
    await assert.rejects(staged(container, []), /its mounts belong to other users/);
  }
});

test("a link in a container leads root nowhere, and what is staged is seen by CRIU alone", async () => {
  await using container = await Container.start(0);
  await container.shell(
    ["--mount"],
    `mount -t tmpfs none /mnt
    cd /mnt
    mkdir old own
    echo inside > own/file
    ln -s /old/etc folder
    ln -s /old/etc/passwd file
    pivot_root . old`,
  );
  assert.equal(await staged(container, ["/own", "/own/file"], 'cat "$1/0/file" "$1/1"; ls "$1/root"'), "inside\ninside\nfile\nfolder\nold\nown");
  for (const path of ["/folder", "/folder/passwd", "/file", "/old/proc/1/root", "/old/proc/self/cwd"])
    await assert.rejects(staged(container, [path]), /is not there: Too many levels of symbolic links/, path);
  await assert.rejects(staged(container, ["/../../own/none"]), /is not there: No such file/);
  assert.equal(await staged(container, ["/../../own"], 'cat "$1/0/file"'), "inside");
  assert.equal(mountAt(stageDir), undefined);
  assert.deepEqual(readdirSync(stageDir), []);
});

test("a network device is moved to a copy with the same ids only, and where rules are on both sides", async () => {
  await using container = await Container.start(0);
  await using copy = await Container.start(0);
  await using other = await Container.start(1);
  const device = "ip tuntap add dev tap0 mode tap; ip link set tap0 up";
  const rules = 'nft "add table inet sandgate; add chain inet sandgate output { type filter hook output priority 0; }"';
  const devicesOf = (of: Container): Promise<string> => of.shell(["--net"], "ip -brief link");
  for (const wrong of [other, container])
    await assert.rejects(images.connect(container.pid, wrong.pid), { fault: "refused", message: /is no copy in that container/ });
  await assert.rejects(images.connect(container.pid, copy.pid), { fault: "refused", message: "the container has no network" });
  await container.shell(["--net"], device);
  await assert.rejects(images.connect(container.pid, copy.pid), { fault: "refused", message: /the container has no rules/ });
  await container.shell(["--net"], rules);
  await assert.rejects(images.connect(container.pid, copy.pid), { fault: "refused", message: /the copy has no rules/ });
  assert.match(await devicesOf(container), /^tap0/m);
  await copy.shell(["--net"], rules);
  await images.connect(container.pid, copy.pid);
  assert.match(await devicesOf(copy), /^tap0/m);
});

test("no image is written over", async () => {
  await using group = unifiedGroup("dump");
  await using container = await Container.start(0);
  writeFileSync(join(group.path, "cgroup.procs"), String(container.pid));
  const dir = join(place.dir, "7");
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "image.json"), "kept");
  const isThere = { fault: "refused", message: "there is an image 7 already" };
  await assert.rejects(images.dump(7, container.pid), isThere);
  await assert.rejects(images.import(7, 1, 0), isThere);
  assert.deepEqual([readdirSync(place.dir), readdirSync(dir), readFileSync(join(dir, "image.json"), "utf8")], [["7"], ["image.json"], "kept"]);
  await images.remove(7);
});

test("an image that is not whole has no number and does not leave the machine", async () => {
  const asks = [() => images.identify(8), () => images.export(8, 0)];
  await mkdir(join(place.dir, "8"), { recursive: true });
  for (const ask of asks) await assert.rejects(ask, { fault: "refused", message: "there is no image 8" });
  await writeFile(join(place.dir, "8", "image.json"), JSON.stringify({ mounts: [], made: "here" }));
  for (const ask of asks) await assert.rejects(ask, { fault: "refused", message: "image 8 is not whole" });
  await images.remove(8);
});

test("a process is told from another with its number", async () => {
  await using container = await Container.start(0);
  const source = sandboxProcess(account, container.pid);
  assert.equal(isStill(source), true);
  assert.equal(isStill({ ...source, pid: process.pid }), false);
});
