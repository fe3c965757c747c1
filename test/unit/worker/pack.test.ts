/** Layers packed and unpacked by the programs of this machine. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { execa } from "execa";
import { accountEnvironment, inPodmanNamespace } from "../../../systemd/as-account.ts";
import { packLayer, unpackLayer } from "../../../worker/runtime/pack.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { until } from "../../helpers/until.ts";

const isRoot = process.getuid?.() === 0;
const fixture = "test/unit/worker/fixtures/round-trip.ts";
const { signal } = new AbortController();
let base: string;

before(() => {
  base = mkdtempSync(join(tmpdir(), "sandgate-pack-"));
});
after(() => rmSync(base, { recursive: true, force: true }));

const folder = (name: string): string => {
  const dir = join(base, name);
  mkdirSync(dir);
  return dir;
};
const childrenOf = (): string[] => readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ").filter(Boolean);
async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
async function* piecesOf(bytes: Uint8Array, length = 100_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}
async function* failing(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield* piecesOf(bytes);
  throw new Error("the source broke");
}

function assertSame(output: string, least: number): void {
  const { before: expected, after: actual } = JSON.parse(output) as { before: string[]; after: string[] };
  assert.deepEqual(actual, expected);
  assert.ok(expected.length > least, `only ${expected.length} lines`);
  for (const part of ["user.overlay.opaque=0x79", "security.capability=0x", "posix_acl_access", " 20000 0 0 "]) {
    assert.ok(
      expected.some((line) => line.includes(part)),
      `no ${part} in\n${expected.join("\n")}`,
    );
  }
}

test("a layer of an overlay comes back with every file, owner, time and attribute", { skip: isRoot ? false : "needs root to make such files" }, async () => {
  assertSame((await execa(process.execPath, ["--import", "tsx", fixture, folder("root")])).stdout, 60);
});

test("so it does in the namespace of the worker's account", async () => {
  const instance = await testInstance(folder("instance"), {});
  const dir = folder("mapped");
  if (isRoot) chownSync(dir, instance.account.uid, instance.account.gid);
  chmodSync(base, 0o755);
  const [file = "", ...args] = inPodmanNamespace(instance, [process.execPath, "--import", "tsx", join(instance.paths.app, fixture), dir]);
  assertSame((await execa(file, args, { cwd: instance.paths.app, env: accountEnvironment(instance), extendEnv: false })).stdout, 60);
});

test("an empty layer and one with a socket are packed, the socket is left out", async () => {
  const [from, to] = [folder("socket"), folder("no-socket")];
  const server = createServer().listen(join(from, "s"));
  await until("a socket", () => existsSync(join(from, "s")));
  await unpackLayer(packLayer(from, signal), to, signal);
  server.close();
  assert.deepEqual(readdirSync(to), []);
});

test("a folder that is not there cannot be packed", async () => {
  await assert.rejects(bytesOf(packLayer(join(base, "missing"), signal)), { code: "internal_error" });
});

test("an archive that is cut off or no archive is refused", async () => {
  const from = folder("whole");
  writeFileSync(join(from, "noise"), Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * index * 31) >> 3)));
  const whole = await bytesOf(packLayer(from, signal));
  for (const [name, bytes] of Object.entries({
    half: whole.subarray(0, whole.length / 2),
    short: whole.subarray(0, -1),
    empty: Buffer.alloc(0),
    none: Buffer.alloc(9e6, "x"),
  })) {
    await assert.rejects(unpackLayer(piecesOf(bytes), folder(name), signal), { code: "internal_error" }, name);
  }
  await assert.rejects(unpackLayer(failing(whole), folder("failing"), signal), /the source broke/);
});

test("a full disk is said to be one", { skip: isRoot ? false : "needs root to mount a small file system" }, async () => {
  const [from, to] = [folder("large"), folder("small")];
  writeFileSync(join(from, "file"), Buffer.alloc(4 * 1024 * 1024, "x"));
  await execa("mount", ["-t", "tmpfs", "-o", "size=1m", "none", to]);
  try {
    await assert.rejects(unpackLayer(packLayer(from, signal), to, signal), { code: "insufficient_storage" });
  } finally {
    await execa("umount", [to]);
  }
});

test("whoever stops reading, or aborts, ends all processes", async () => {
  const from = folder("endless");
  await execa("sh", ["-c", "head -c 50000000 /dev/urandom > file"], { cwd: from });
  for await (const _ of packLayer(from, signal)) break;
  const abort = new AbortController();
  const packing = packLayer(from, abort.signal);
  await packing.next();
  abort.abort(new Error("enough"));
  await assert.rejects(bytesOf(packing), /enough/);
  const abortUnpacking = new AbortController();
  const endless = (async function* () {
    yield* packLayer(from, signal);
    abortUnpacking.abort(new Error("enough"));
    yield Buffer.alloc(1);
  })();
  await assert.rejects(unpackLayer(endless, folder("aborted"), abortUnpacking.signal), /enough/);
  await until("no processes", () => childrenOf().filter((pid) => /tar|zstd|nice/.test(commandOf(pid))).length === 0);
});

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8");
  } catch {
    return "";
  }
}
