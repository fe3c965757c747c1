/** Layers packed and unpacked by the programs of this machine. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { type Header, pack } from "tar-stream";
import { accountEnvironment, inPodmanNamespace } from "../../../../../systemd/base/as-account.ts";
import { packLayer, UnpackFailed, unpackDeepLayer, unpackLayer } from "../../../../../worker/runtime/filesystem/pack.ts";
import { fixture } from "../../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";
import { testInstance } from "../../../../helpers/prepare.ts";
import { until } from "../../../../helpers/until.ts";

const isRoot = process.getuid?.() === 0;
const roundTrip = "test/unit/worker/fixtures/round-trip.ts";
const { signal } = new AbortController();

const { path: base } = fixture(temporaryFolder("pack"));

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
  const { before: expected, after: actual } = JSON.parse(output) as { before: string[]; after: string[][] };
  assert.deepEqual(actual, [expected, expected]);
  assert.ok(expected.length > least, `only ${expected.length} lines`);
  for (const part of ["user.overlay.opaque=0x79", "security.capability=0x", "posix_acl_access", " 20000 0 0 "]) {
    assert.ok(
      expected.some((line) => line.includes(part)),
      `no ${part} in\n${expected.join("\n")}`,
    );
  }
}

test("a layer of an overlay comes back with every file, owner, time and attribute", { skip: isRoot ? false : "needs root to make such files" }, async () => {
  assertSame((await execa(process.execPath, ["--import", "tsx", roundTrip, folder("root")])).stdout, 60);
});

test("a layer comes back complete in the user namespace of the worker's account", async () => {
  const instance = await testInstance(folder("instance"), {});
  const dir = folder("mapped");
  if (isRoot) chownSync(dir, instance.account.uid, instance.account.gid);
  chmodSync(base, 0o755);
  // The account has no folder of its own for temporary files.
  const env = { ...accountEnvironment(instance), TSX_DISABLE_CACHE: "1" };
  const [file = "", ...args] = inPodmanNamespace(instance, [process.execPath, "--import", "tsx", join(instance.paths.app, roundTrip), dir]);
  assertSame((await execa(file, args, { cwd: instance.paths.app, env, extendEnv: false })).stdout, 60);
});

const makeDeep = `
set -e
printf content > top; exec 3< .; printf "x%.0s" {1..70000} > large; touch -d @0.000000001 large
down() { perl -e '($depth, $name, $then) = @ARGV; for (1 .. $depth) { mkdir $name; chdir $name or die $! } exec "bash", "-ec", $then' "$@"; }
down 400 "$(printf 'n\\nm %.0s' {1..40})" 'echo 1 > file; touch -d @5.5 .'
down 6000 d 'mknod whiteout c 0 0 || mkfifo whiteout; touch -d @7.000000007 -h . whiteout'
down 2990 d 'touch -d @8.000000008 .'
down 3010 d 'echo 2 > "$(printf "\\377%.0s" {1..255})"; ln -s "$(printf "t%.0s" {1..3500})" link; ln /proc/self/fd/3/top linked; truncate -s 9M holes; setfattr -n user.note -v 0x000a3dff .'
touch -d @9.000000009 .
`;
type Entry = Partial<Header> & { name: string };

/** `find` descends step by step, so it handles paths of any length. Its long output is reduced to a count and a sum. */
const filesIn = async (cwd: string): Promise<string> => {
  const script = "set -o pipefail; find . -printf '%P %M %U %G %T@ %n %s %l\\0' | sort -z | tee >(tr -dc '\\0' | wc -c >&2) | sha256sum";
  return (await execa("bash", ["-c", script], { cwd, env: { LC_ALL: "C" }, all: true })).all;
};

test("a layer with paths of any length comes back, which tar alone cannot do", async () => {
  const [from, alone, to] = [folder("depths"), folder("alone"), folder("cut")];
  await execa("bash", ["-c", makeDeep], { cwd: from });
  const before = await filesIn(from);
  assert.match(before, /^64\d{2}$/m);
  const layer = await bytesOf(packLayer(from, signal));
  await assert.rejects(unpackLayer(piecesOf(layer), alone, signal), UnpackFailed);
  await unpackDeepLayer(piecesOf(layer), to, signal);
  assert.deepEqual((await filesIn(to)).split("\n").sort(), before.split("\n").sort());
  await execa("rm", ["-r", from, alone, to]);
});

test("forbidden contents of an archive with long names are refused", async () => {
  const long = "d/".repeat(2_000);
  const links: Entry[] = [{ name: "./link", type: "symlink", linkname: "." }];
  const hostile: Record<string, Entry[]> = {
    "through a link": [...links, { name: `./link/${long}`, type: "directory" }, { name: `./link/${long}file` }],
    upwards: [{ name: `./${long}../../${long}file` }],
    "upwards at the cut": [{ name: `./${"d/".repeat(1_500)}../../${long}file` }],
    absolute: [{ name: `${base}/${long}file` }],
  };
  for (const [name, entries] of Object.entries(hostile)) {
    const stream = pack();
    for (const entry of entries) stream.entry(entry as Header, "");
    stream.finalize();
    const { stdout } = await execa("zstd", ["-q", "-c"], { input: await bytesOf(stream as AsyncIterable<Uint8Array>), encoding: "buffer" });
    await assert.rejects(unpackDeepLayer(piecesOf(stdout), folder(name), signal), { code: "internal_error" }, name);
  }
});

test("an empty layer and one with a socket are packed without the socket", async () => {
  const [from, to] = [folder("socket"), folder("no-socket")];
  const server = createServer().listen(join(from, "s"));
  await until("a socket", () => existsSync(join(from, "s")));
  await unpackLayer(packLayer(from, signal), to, signal);
  server.close();
  assert.deepEqual(readdirSync(to), []);
});

test("a missing folder cannot be packed", async () => {
  await assert.rejects(bytesOf(packLayer(join(base, "missing"), signal)), { code: "internal_error" });
});

test("a truncated archive, and a file that is no archive, are refused", async () => {
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
    await assert.rejects(unpackDeepLayer(piecesOf(bytes), folder(`deep-${name}`), signal), { code: "internal_error" }, name);
  }
  for (const unpack of [unpackLayer, unpackDeepLayer])
    await assert.rejects(unpack(failing(whole), folder(`failing-${unpack.name}`), signal), /the source broke/);
});

test("a full disk is reported as such", { skip: isRoot ? false : "needs root to mount a small file system" }, async () => {
  const [from, to] = [folder("large"), folder("small")];
  writeFileSync(join(from, "file"), Buffer.alloc(4 * 1024 * 1024, "x"));
  await execa("mount", ["-t", "tmpfs", "-o", "size=1m", "none", to]);
  try {
    await assert.rejects(unpackLayer(packLayer(from, signal), to, signal), { code: "insufficient_storage" });
  } finally {
    await execa("umount", [to]);
  }
});

test("all processes end when the reader stops or aborts", async () => {
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
