/** Differences of which large files have only the blocks that have changed, on a real file system whose folders are copied in no time. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { run } from "../../../../../systemd/base/run.ts";
import { isVolume } from "../../../../../systemd/volume/volume.ts";
import { type BlockFile, blockFilesOf, withBlockFiles } from "../../../../../worker/runtime/filesystem/block-header.ts";
import { fillBlocks, keepBlocks } from "../../../../../worker/runtime/filesystem/blocks.ts";
import { keepDifference } from "../../../../../worker/runtime/filesystem/difference.ts";
import { packLayer, unpackLayer } from "../../../../../worker/runtime/filesystem/pack.ts";
import { fixture } from "../../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";
import { testInstance } from "../../../../helpers/prepare.ts";
import { TestVolume } from "../../../../helpers/volume.ts";

const MiB = 1024 ** 2;
const { signal } = new AbortController();
const folder = fixture(temporaryFolder("blocks", 0o711));
const instance = await testInstance(join(folder.path, "data"), {});
const { found } = await fixture(TestVolume.make(instance, join(instance.paths.data, "one")));
const { dir: top } = isVolume(found) ? found : assert.fail(found.reason);

const at = (name: string): string => join(top, name);
const shell = (script: string, ...args: string[]): Promise<string> => run(["sh", "-euc", script, "sh", ...args], { cwd: top });
const copied = (from: string, to: string): Promise<string> => run(["btrfs", "subvolume", "snapshot", at(from), at(to)]);

afterEach(() => shell("find . -mindepth 1 -maxdepth 1 -exec btrfs subvolume delete {} +"));

/** Makes a layer, and by each of the changes a later one. They are called 0, 1, 2 and so on. */
async function layers(before: string, ...changes: string[]): Promise<void> {
  await run(["btrfs", "subvolume", "create", at("0")]);
  for (const [index, change] of [before, ...changes].entries()) {
    if (index > 0) await copied(String(index - 1), String(index));
    // Not within the time in which everything counts as changed.
    await shell('sleep 0.2; cd "$1"; eval "$2"; sync', String(index), change);
  }
}

interface Stored {
  readonly files: BlockFile[];
  readonly archive: Buffer;
}

/** What is stored of a layer that has one before it. */
async function stored(layer: number): Promise<Stored> {
  const [copy, later, earlier] = ["copy", String(layer), String(layer - 1)].map(at) as [string, string, string];
  await copied(String(layer), "copy");
  const newest = Number(await shell('find "$1" -printf "%C@\\\\n" | sort -n | tail -n 1', earlier)) * 1000;
  await keepDifference(copy, later, { dir: earlier, madeAtMs: Math.ceil(newest) + 100 });
  const files = await keepBlocks(copy, later, earlier);
  const parts: Uint8Array[] = [];
  for await (const part of withBlockFiles(files, packLayer(copy, signal))) parts.push(part);
  await shell("btrfs subvolume delete copy");
  return { files, archive: Buffer.concat(parts) };
}

/** The first piece ends within what stands before an archive. */
async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const [first, length] = [10, 100_000];
  yield bytes.subarray(0, first);
  for (let from = first; from < bytes.length; from += length) yield bytes.subarray(from, from + length);
}

/** Unpacks what was stored into a new folder over others. */
async function unpacked(bytes: Uint8Array, name: string, below: readonly string[], bytesMax = 100 * MiB): Promise<string> {
  await run(["btrfs", "subvolume", "create", at(name)]);
  return unpackInto(at(name), bytes, below, bytesMax);
}

async function unpackInto(dir: string, bytes: Uint8Array, below: readonly string[], bytesMax = 100 * MiB): Promise<string> {
  const { files, archive } = await blockFilesOf(inPieces(bytes));
  await unpackLayer(archive, dir, signal);
  await fillBlocks(dir, below, files, bytesMax);
  return dir;
}

/** Every file with what is known of it, and its content. */
const described = (dir: string, names: string): Promise<string> =>
  shell('cd "$1"; stat -c "%n %F %s %a %u %g %y %h" $2; find $2 -type f -exec sha256sum {} +', dir, names);

const large = "head -c 4000000 /dev/urandom >";
const changed = (name: string, offset: number): string => `printf x | dd of=${name} bs=1 seek=${offset} conv=notrunc status=none`;

test("a byte, more at the end, less at the end, zeros, holes and several names: a fraction is stored, and everything comes back", async () => {
  const names = ["byte", "grown", "cut", "zeros", "holes", "sparse", "named", "other"];
  await layers(
    `for name in byte grown cut zeros holes named small; do ${large} $name; done; ln named other; truncate -s 3M small; chmod 600 byte; chown 33:44 byte
     ${large} sparse; truncate -s 6M sparse; ${changed("sparse", 5_500_000)}`,
    `${changed("byte", 1_234_567)}; head -c 20000 /dev/urandom >> grown; truncate -s 2000000 cut; ${changed("cut", 3)}
     dd if=/dev/zero of=zeros bs=1M count=1 seek=1 conv=notrunc status=none; fallocate -p -o 1M -l 1M holes; ${changed("sparse", 5_000_000)}
     ${changed("other", 77)}; touch -d 2001-02-03T04:05:06.123456789 named`,
  );
  const { files, archive } = await stored(1);
  // Names of one file are one.
  assert.equal(files.length, names.length - 1);
  assert.ok(archive.length < 200_000, `${archive.length} bytes`);
  const later = await unpacked(archive, "later", [at("0")]);
  assert.equal(await described(later, names.join(" ")), await described(at("1"), names.join(" ")));
  assert.ok(!existsSync(join(later, "small")));
  // Nothing is there twice.
  const [, exclusive] = (await shell("btrfs filesystem du --raw -s later | tail -n 1")).trim().split(/\s+/);
  assert.ok(Number(exclusive) < 2 * MiB, `${exclusive} bytes of its own`);
});

test("a chain comes back, each from what is below it", async () => {
  await layers(
    `${large} file; ${large} kept; mkdir sub; ${large} sub/file`,
    `${changed("file", 5)}; ${changed("sub/file", 5)}`,
    `${changed("file", 3_000_000)}; ${changed("kept", 9)}`,
  );
  const [second, third] = [await stored(1), await stored(2)];
  const one = await unpacked(second.archive, "one", [at("0")]);
  const two = await unpacked(third.archive, "two", [one, at("0")]);
  assert.equal(await described(two, "file kept"), await described(at("2"), "file kept"));
  assert.equal(await described(one, "file sub/file"), await described(at("1"), "file sub/file"));
});

test("where blocks cannot be shared they are copied: on a disk that does not, and from one disk to another", async () => {
  await layers(
    `${large} file; ${large} holes; truncate -s 6M holes`,
    `${changed("file", 5)}; ${changed("holes", 6_000_000)}; touch -d 2001-02-03T04:05:06.123456789 file`,
  );
  const { archive } = await stored(1);
  const [plain, to] = ["plain", "to"].map((name) => join(folder.path, name)) as [string, string];
  await run(["cp", "-a", at("0"), plain]);
  for (const below of [plain, at("0")]) {
    mkdirSync(to);
    await unpackInto(to, archive, [below]);
    assert.equal(await described(to, "file holes"), await described(at("1"), "file holes"));
    assert.ok(statSync(join(to, "holes")).blocks * 512 < 5 * MiB, "what was a hole is one");
    rmSync(to, { recursive: true });
  }
  rmSync(plain, { recursive: true });
});

test("what is another file, small, mostly changed, mostly holes, or gives rights, is stored whole", async () => {
  await layers(
    `for name in another folder most rights; do ${large} $name; done; head -c 100000 /dev/urandom > small; truncate -s 100M hollow; chmod 4755 rights`,
    `rm another folder; ${large} another; mkdir folder; echo 1 > folder/file; head -c 3000000 /dev/urandom | dd of=most conv=notrunc status=none; ${changed("small", 1)}
     ${changed("hollow", 5)}; ${changed("rights", 5)}; chmod 4755 rights`,
  );
  const { files, archive } = await stored(1);
  assert.deepEqual(files, []);
  const names = "another folder folder/file most small hollow rights";
  assert.equal(await described(await unpacked(archive, "later", []), names), await described(at("1"), names));
});

const refused = { code: "internal_error" } as const;

test("a file that does not become what it was is refused: without, or with other, files below it", async () => {
  await layers(`mkdir sub; ${large} sub/file`, changed("sub/file", 5));
  const { archive } = await stored(1);
  const below: Record<string, string> = {
    none: "true",
    "another one": `${large} sub/file`,
    "a shorter one": "truncate -s 1000 sub/file",
    "one byte": changed("sub/file", 2_000_000),
    "a folder": "rm sub/file; mkdir sub/file",
    "a link": `cp sub/file ../0/copy; rm sub/file; ln -s ${at("0")}/copy sub/file`,
    "a folder that is a link": `mv sub elsewhere; ln -s elsewhere sub`,
    "a whiteout": "rm sub/file; mknod sub/file c 0 0",
    "a FIFO": "rm sub/file; mkfifo sub/file",
  };
  for (const [what, change] of Object.entries(below)) {
    await copied("0", "below");
    await shell('cd below; eval "$1"', change);
    await assert.rejects(unpacked(archive, "later", what === "none" ? [] : [at("below")]), refused, what);
    await shell("btrfs subvolume delete below later");
  }
});

test("a hostile archive writes nothing outside its folder, and takes no more than it may", async () => {
  await layers(`${large} file`, `${changed("file", 5)}; mkdir sub; ln -s ${folder.path} sub/link`);
  const { files, archive } = await stored(1);
  const [{ ...file } = assert.fail()] = files;
  const tar = async (): Promise<AsyncGenerator<Uint8Array>> => (await blockFilesOf(inPieces(archive))).archive;
  const withFiles = async (...others: object[]): Promise<Buffer> => {
    const parts: Uint8Array[] = [];
    for await (const part of withBlockFiles(others as BlockFile[], await tar())) parts.push(part);
    return Buffer.concat(parts);
  };
  const hex = (path: string): string => Buffer.from(path).toString("hex");
  const victim = join(folder.path, "victim");
  writeFileSync(victim, "as it was");
  truncateSync(victim, file.size);
  const before = readFileSync(victim);
  const hostile: Record<string, object> = {
    upwards: { path: hex(`../${"../".repeat(20)}${victim.slice(1)}`) },
    absolute: { path: hex(victim) },
    "over a link": { path: hex("sub/link/victim") },
    "not there": { path: hex("none") },
    "no path": { path: "" },
    "no digits": { path: "zz" },
    "another size": { size: file.size + 1 },
    "another hash": { sha256: "0".repeat(64) },
    "ranges beyond the end": { kept: [[0, file.size + 1]] },
    "ranges backwards": {
      kept: [
        [100, 200],
        [0, 50],
      ],
    },
    "ranges that are none": { kept: [[-1, 5]] },
    "ranges as text": { kept: ["0-5; rm"] },
  };
  for (const [what, change] of Object.entries(hostile)) {
    await assert.rejects(unpacked(await withFiles({ ...file, ...change }), "later", [at("0")]), refused, what);
    await shell("btrfs subvolume delete later");
  }
  assert.deepEqual(readFileSync(victim), before);
  await assert.rejects(unpacked(archive, "later", [at("0")], MiB), { code: "insufficient_storage" });
  assert.ok(statSync(at("later/file")).blocks * 512 < MiB);
  rmSync(victim);
});

test("what stands before an archive is refused when it is cut short, too long or no description", async () => {
  const texts = [
    "sandgate-blocks-1 00000050[]",
    "sandgate-blocks-1 99999999[]",
    "sandgate-blocks-1 0000000x[]",
    "sandgate-blocks-1 00000002{}",
    "sandgate-blocks-1 00000003[1]",
  ];
  for (const text of texts) await assert.rejects(blockFilesOf(inPieces(Buffer.from(text))), refused, text);
  for (const text of ["", "sandgate-", "an archive of an earlier version, which has nothing before it"]) {
    const { files, archive } = await blockFilesOf(inPieces(Buffer.from(text)));
    let rest = "";
    for await (const part of archive) rest += Buffer.from(part).toString();
    assert.deepEqual([files, rest], [[], text]);
  }
});
