/** Images of processes on their way between machines: what a helper takes from others, and what it does not (systemd/helper/THREATS.md). */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, open, readdir, readFile, truncate, writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { openPipe } from "../../../../shared/util/libc.ts";
import { run } from "../../../../systemd/base/run.ts";
import { MemoryImages } from "../../../../systemd/helper/memory/images.ts";
import { readMemoryKey } from "../../../../systemd/helper/memory/key.ts";
import { openWorkersPipe } from "../../../../systemd/helper/memory/pipe.ts";
import { keyBytes, seal, unseal } from "../../../../systemd/helper/memory/sealed.ts";
import { type About, pack, unpack } from "../../../../systemd/helper/memory/travel.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const folder = fixture(temporaryFolder("sealed", 0o700));
const key = randomBytes(keyBytes);
const identity = 2 ** 47 + 12_345;
const headBytes = 38;
const content = randomBytes(200_000);
/** In parts of all sizes. */
async function* parts(bytes: Uint8Array, ...sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let [at, index] = [0, 0]; at < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? bytes.length;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}
const sealed = (about = "about", body: Uint8Array = content, as = identity, by: Uint8Array = key): Promise<Buffer> =>
  buffer(seal(by, as, Buffer.from(about), parts(body, 7, 100_000, 1)));

async function opened(stream: Uint8Array, as = identity, by: Uint8Array = key): Promise<{ about: string; body: Buffer }> {
  const { about, body } = await unseal(by, as, parts(stream, 1, 3, 5_000, 80_000));
  return { about: about.toString(), body: await buffer(body) };
}
/** The chunks of a stream, each with its length in front. */
function chunksOf(stream: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = headBytes; at < stream.length; ) {
    const length = 4 + (stream.readUInt32BE(at) & 0x7fffffff) + 16;
    chunks.push(stream.subarray(at, at + length));
    at += length;
  }
  return chunks;
}
const untrusted = { fault: "refused", message: /cannot be trusted/ };

test("what was sealed comes out again, and no two streams are alike", async () => {
  const [one, other] = [await sealed(), await sealed()];
  assert.deepEqual(await opened(one), { about: "about", body: content });
  assert.equal(one.equals(other), false);
  assert.equal(one.includes(content.subarray(0, 16)), false);
  assert.deepEqual(await opened(await sealed("", new Uint8Array(0))), { about: "", body: Buffer.alloc(0) });
});

test("no stream with a byte changed, added or left out is taken", async () => {
  const stream = await sealed("about", content.subarray(0, 300));
  for (let at = 0; at < stream.length; at++) {
    const changed = Buffer.from(stream);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    await assert.rejects(opened(changed), { fault: "refused" }, `byte ${at}`);
    await assert.rejects(opened(stream.subarray(0, at)), untrusted, `the first ${at}`);
  }
  await assert.rejects(opened(Buffer.concat([stream, Buffer.from([0])])), untrusted);
  await assert.rejects(opened(Buffer.concat([stream, stream])), untrusted);
});

test("no stream whose chunks were left out, repeated, moved, or taken from another is taken", async () => {
  const [one, other] = [await sealed(), await sealed()];
  const [head, chunks, others] = [one.subarray(0, headBytes), chunksOf(one), chunksOf(other)];
  const [about, first, second, ...more] = chunks as [Buffer, Buffer, Buffer, ...Buffer[]];
  const last = chunks.at(-1) as Buffer;
  const spliced: Record<string, readonly Buffer[]> = {
    "without its about": [first, second, ...more],
    "one left out": [about, second, ...more],
    "one repeated": [about, first, first, second, ...more],
    "two exchanged": [about, second, first, ...more],
    "an early end": [about, first, last],
    "an end and more": [...chunks, first, last],
    "the about of another": [others[0] as Buffer, ...chunks.slice(1)],
    "the end of another": [...chunks.slice(0, -1), others.at(-1) as Buffer],
    "all of another": others,
  };
  assert.deepEqual((await opened(Buffer.concat([head, ...chunks]))).body, content);
  for (const [what, made] of Object.entries(spliced)) await assert.rejects(opened(Buffer.concat([head, ...made])), untrusted, what);
  const ended = Buffer.from(first);
  ended.writeUInt32BE((ended.readUInt32BE() | 0x80000000) >>> 0);
  await assert.rejects(opened(Buffer.concat([head, about, ended])), untrusted, "a chunk that says that it is the last");
  const long = Buffer.from(first);
  long.writeUInt32BE(0x7fffffff);
  await assert.rejects(opened(Buffer.concat([head, about, long])), untrusted, "a chunk of two gigabytes is not waited for");
});

test("no stream of another image or another installation is taken", async () => {
  const stream = await sealed();
  await assert.rejects(opened(stream, identity - 1), untrusted);
  await assert.rejects(opened(stream, identity, randomBytes(keyBytes)), untrusted);
  await assert.rejects(opened(await sealed("about", content, identity, randomBytes(keyBytes))), untrusted);
});

test("nothing of a stream is given before it is known to be genuine", async () => {
  const stream = await sealed();
  stream.writeUInt8(stream.readUInt8(stream.length - 1) ^ 1, stream.length - 1);
  const { body } = await unseal(key, identity, parts(stream, 10_000));
  const got: Buffer[] = [];
  await assert.rejects(async () => {
    for await (const part of body) got.push(part);
  }, untrusted);
  assert.deepEqual(Buffer.concat(got), content);
});

/** A folder as CRIU leaves it. */
async function image(name: string): Promise<string> {
  const dir = join(folder.path, name);
  await mkdir(dir);
  await writeFile(join(dir, "pages-1.img"), content);
  await writeFile(join(dir, "core-1.img"), "core");
  await writeFile(join(dir, "criu.log"), "said");
  return dir;
}
const place = { dir: folder.path, floorBytes: 0, keyFile: join(folder.path, "key") };
const about = { mounts: ["/dev/null"], made: "this machine" };
const pass = (): void => {};

async function packed(dir: string): Promise<Buffer> {
  const { readFd, writeFd } = openPipe();
  const [from, to] = [new Socket({ fd: readFd, readable: true, writable: false }), new Socket({ fd: writeFd, readable: false, writable: true })];
  const [bytes] = await Promise.all([buffer(from), pack(dir, about, { key, identity }, to)]);
  return bytes;
}

test("the files of an image come out again, and nothing else of its folder", async () => {
  const stream = await packed(await image("source"));
  const target = join(folder.path, "target");
  await mkdir(target);
  const found = await unpack(parts(stream, 50_000), target, { key, identity, place, check: pass });
  assert.deepEqual([found.mounts, found.made], [about.mounts, about.made]);
  assert.deepEqual((await readdir(target)).sort(), ["core-1.img", "pages-1.img"]);
  assert.deepEqual(await readFile(join(target, "pages-1.img")), content);
});

test("an image that does not fit, has no room or is larger than it says is refused before or while it is unpacked", async () => {
  const stream = await packed(await image("unfit"));
  const target = join(folder.path, "unfit-target");
  await mkdir(target);
  const refuse = ({ made }: About): void => {
    throw new Error(`made by ${made}`);
  };
  await assert.rejects(unpack(parts(stream, 50_000), target, { key, identity, place, check: refuse }), /made by this machine/);
  const full = { ...place, floorBytes: Number.MAX_SAFE_INTEGER };
  await assert.rejects(unpack(parts(stream, 50_000), target, { key, identity, place: full, check: pass }), { message: /no room for it/ });
  assert.deepEqual(await readdir(target), []);
  const head = Buffer.from(JSON.stringify({ ...about, bytes: 1_000 }));
  const { body } = await unseal(key, identity, parts(stream, 50_000));
  const larger = await buffer(seal(key, identity, head, body));
  await assert.rejects(unpack(parts(larger, 50_000), target, { key, identity, place, check: pass }), { message: /larger than it says/ });
});

test("a file that cannot be read leaves a stream without an end", async () => {
  const dir = await image("shrinking");
  await truncate(join(dir, "pages-1.img"), 2 ** 40);
  const { readFd, writeFd } = openPipe();
  const [from, to] = [new Socket({ fd: readFd, readable: true, writable: false }), new Socket({ fd: writeFd, readable: false, writable: true })];
  const bytes = buffer(from);
  const packing = assert.rejects(pack(dir, about, { key, identity }, to), { message: /could not be read or written/ });
  const { pids } = await tarOf(dir);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await packing;
  to.destroy();
  await assert.rejects(bytes.then((all) => opened(all)));
});

async function tarOf(dir: string): Promise<{ readonly pids: number[] }> {
  for (;;) {
    const found = await run(["pgrep", "-f", `^tar --create --format=gnu --directory=${dir}`]).catch(() => "");
    if (found) return { pids: found.split("\n").map(Number) };
  }
}

const worker = { pid: process.pid, account: { name: "worker", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 } };

test("nothing but a pipe of the worker's user is opened, whatever the number of a descriptor leads to", async () => {
  const file = join(folder.path, "owned-by-root");
  await writeFile(file, "kept");
  const fifo = join(folder.path, "fifo");
  await run(["mkfifo", fifo]);
  const opened = [await open(file, "r"), await open(fifo, "r+"), await open("/dev/null", "r")];
  for (const { fd } of opened)
    for (const direction of ["read", "write"] as const)
      assert.throws(() => openWorkersPipe(worker, fd, direction), { fault: "refused", message: /not a pipe/ });
  assert.equal(await readFile(file, "utf8"), "kept");
  assert.throws(() => openWorkersPipe(worker, 1_000_000, "write"), { fault: "refused" });
  const { readFd, writeFd } = openPipe();
  const other = { ...worker, account: { ...worker.account, uid: worker.account.uid + 1 } };
  assert.throws(() => openWorkersPipe(other, writeFd, "write"), { fault: "refused", message: /not a pipe/ });
  const [from, to] = [openWorkersPipe(worker, readFd, "read"), openWorkersPipe(worker, writeFd, "write")];
  to.end("through");
  new Socket({ fd: writeFd, readable: false, writable: true }).destroy();
  assert.equal((await buffer(from)).toString(), "through");
  new Socket({ fd: readFd, readable: true, writable: false }).destroy();
  for (const handle of opened) await handle.close();
});

test("without the key of the installation no image leaves or comes, and no other user can have put one there", async () => {
  await assert.rejects(readMemoryKey(join(folder.path, "no-key")), { fault: "refused", message: /does not have the key/ });
  await writeFile(join(folder.path, "short-key"), "c2hvcnQ\n", { mode: 0o600 });
  await assert.rejects(readMemoryKey(join(folder.path, "short-key")), { fault: "refused" });
  await writeFile(join(folder.path, "loose-key"), `${key.toString("base64url")}\n`);
  await chmod(join(folder.path, "loose-key"), 0o666);
  await assert.rejects(readMemoryKey(join(folder.path, "loose-key")), /can be written by every user/);
  await writeFile(place.keyFile, `${key.toString("base64url")}\n`, { mode: 0o600 });
  assert.deepEqual(await readMemoryKey(place.keyFile), key);
  const images = new MemoryImages({ ...place, dir: join(folder.path, "none"), keyFile: join(folder.path, "no-key") }, worker);
  await assert.rejects(images.identify(1), { fault: "refused", message: /does not have the key/ });
  await assert.rejects(images.export(1, 0), { fault: "refused", message: /does not have the key/ });
  await assert.rejects(images.import(1, 1, 0), { fault: "refused", message: /does not have the key/ });
  assert.equal(existsSync(join(folder.path, "none")), false);
});
