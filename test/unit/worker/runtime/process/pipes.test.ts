/** Readers of real pipes. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, readFileSync, readSync, writeSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { letWait, openPipe } from "../../../../../shared/util/libc.ts";
import { PipeReader } from "../../../../../worker/runtime/process/pipes.ts";
import { until } from "../../../../helpers/until.ts";

/** Writes until the pipe takes no more. @returns how many bytes it has taken */
function fill(fd: number, byte: string): number {
  const bytes = Buffer.alloc(4_096, byte);
  let written = 0;
  try {
    for (;;) written += writeSync(fd, bytes);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN");
    return written;
  }
}

async function textOf(reader: PipeReader): Promise<string> {
  let text = "";
  for (let chunk = await reader.next(); chunk; chunk = await reader.next()) text += chunk.toString();
  return text;
}

test("nothing is read that was not asked for: it stays in the pipe, and the writer waits", async () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd);
  const held = fill(writeFd, "a");
  assert.ok(held > 0);
  await sleep(100);
  assert.equal(fill(writeFd, "b"), 0, "a reader that was never asked has read something");
  const first = await reader.next();
  assert.ok(first && first.length > 0);
  await sleep(100);
  assert.equal(fill(writeFd, "b"), first.length, "more was read than was asked for");
  closeSync(writeFd);
  assert.equal(first.toString() + (await textOf(reader)), "a".repeat(held) + "b".repeat(first.length));
  reader.close();
});

test("many readers that are asked at the same time each get what is theirs", async () => {
  const pipes = Array.from({ length: 50 }, (_, index) => ({ ...openPipe(), byte: String.fromCharCode(65 + index) }));
  const texts = pipes.map(async ({ readFd }) => {
    const reader = new PipeReader(readFd);
    return textOf(reader).finally(() => reader.close());
  });
  const written = pipes.map(() => 0);
  for (let round = 0; round < 5; round++) {
    for (const [index, { writeFd, byte }] of pipes.entries()) written[index] = (written[index] ?? 0) + fill(writeFd, byte);
    await sleep(5);
  }
  for (const { writeFd } of pipes) closeSync(writeFd);
  assert.deepEqual(
    await Promise.all(texts),
    pipes.map(({ byte }, index) => byte.repeat(written[index] ?? 0)),
  );
});

test("once the command has exited, what is in the pipe is read, and nobody waits for others that have the pipe", async () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd);
  const held = fill(writeFd, "a");
  reader.writerExited();
  assert.equal((await textOf(reader)).length, held);
  reader.close();
  closeSync(writeFd);
});

test("what has been written and closed before it is asked for is read, and the pipe is closed then", async () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd);
  writeSync(writeFd, "all of it");
  closeSync(writeFd);
  assert.equal(await textOf(reader), "all of it");
  await until("the pipe is closed", () => isClosed(readFd));
  reader.close();
});

test("a reader that was never asked is closed", () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd);
  reader.close();
  assert.ok(isClosed(readFd));
  reader.close();
  closeSync(writeFd);
});

test("a reader that waits hears of the exit, of the end, and of being closed", async () => {
  for (const end of [
    (reader: PipeReader, writeFd: number) => {
      reader.writerExited();
      closeSync(writeFd);
    },
    (_reader: PipeReader, writeFd: number) => closeSync(writeFd),
    (reader: PipeReader, writeFd: number) => {
      reader.close();
      closeSync(writeFd);
    },
  ]) {
    const { readFd, writeFd } = openPipe();
    const reader = new PipeReader(readFd);
    const next = reader.next();
    await sleep(20);
    end(reader, writeFd);
    assert.equal(await next, undefined);
    reader.close();
    await until("the pipe is closed", () => isClosed(readFd));
  }
});

test("what a sandbox writes fast comes whole and in order, with what it wrote last before it exited", async () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd, undefined, {});
  const text = textOf(reader);
  let written = "";
  for (const byte of "abcdefgh") {
    written += byte.repeat(fill(writeFd, byte));
    await sleep(2);
  }
  written += "z".repeat(fill(writeFd, "z"));
  reader.writerExited();
  assert.equal(await text, written);
  reader.close();
  closeSync(writeFd);
  await until("the pipe is closed", () => isClosed(readFd));
});

test("long output comes in pieces of 64 KiB, and in larger ones where there is room for them", async () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd, undefined, {});
  for (let chunk = 0; chunk < 4; chunk++) {
    writeSync(writeFd, "x");
    await reader.next();
  }
  const usual = 64 * 1024;
  const pieces: Buffer[] = [];
  const sizes: (number | undefined)[] = [];
  const held = Buffer.alloc(3.5 * usual, "abcdefg");
  assert.equal(writeSync(writeFd, held), held.length);
  closeSync(writeFd);
  for (const roomBytes of [undefined, 1, 1024 * usual, usual]) {
    const piece = await reader.next(roomBytes);
    sizes.push(piece?.length);
    if (piece) pieces.push(Buffer.from(piece)); // Its memory is used again.
  }
  assert.deepEqual(sizes, [usual, usual, held.length - 2 * usual, undefined]);
  assert.ok(Buffer.concat(pieces).equals(held));
  reader.close();
});

test("the pipes of long output hold more, but only so many of them, until others are closed", async () => {
  const usual = 64 * 1024;
  const pipes = await Promise.all(
    Array.from({ length: 66 }, async () => {
      const { readFd, writeFd } = openPipe();
      const reader = new PipeReader(readFd, undefined, {});
      for (let chunk = 0; chunk < 4; chunk++) {
        writeSync(writeFd, "x");
        await reader.next();
      }
      return { reader, writeFd, held: fill(writeFd, "x") };
    }),
  );
  const held = pipes.map((pipe) => pipe.held).sort((one, other) => one - other);
  assert.deepEqual([held.filter((bytes) => bytes === usual).length, held.filter((bytes) => bytes === 4 * usual).length], [2, 64]);
  for (const { reader, writeFd } of pipes) {
    closeSync(writeFd);
    reader.close();
  }
  const { readFd, writeFd } = openPipe();
  const later = new PipeReader(readFd, undefined, {});
  for (let chunk = 0; chunk < 4; chunk++) {
    writeSync(writeFd, "x");
    await later.next();
  }
  assert.equal(fill(writeFd, "x"), 4 * usual);
  closeSync(writeFd);
  later.close();
});

test("what is read for nothing is shared out by sandboxes, however many commands one has", async () => {
  const [greedy, other] = [{}, {}];
  const order: string[] = [];
  const drops = (owner: object, name: string, count: number) =>
    Array.from({ length: count }, async () => {
      const { readFd, writeFd } = openPipe();
      const reader = new PipeReader(readFd, undefined, owner);
      await reader.drop(1024 ** 2);
      order.push(name);
      reader.close();
      closeSync(writeFd);
    });
  await Promise.all([...drops(greedy, "greedy", 10), ...drops(other, "other", 2)]);
  assert.deepEqual(order.slice(0, 4).toSorted(), ["greedy", "greedy", "other", "other"]);
});

// Whoever writes to a pipe has it locked until what is written has been copied, here from memory that never comes.
const holdingWriter = `
import ctypes, fcntl, os, platform, signal, struct
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
faults = libc.syscall({"x86_64": 323, "aarch64": 282}[platform.machine()], 0o2000000)
fcntl.ioctl(faults, 0xC018AA3F, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
region = libc.mmap(None, 4096, 3, 0x22, -1, 0)
fcntl.ioctl(faults, 0xC020AA00, bytearray(struct.pack("QQQQ", region, 4096, 1, 0)))
signal.alarm(20)
for _ in range(9): os.write(1, b"a" * 65536)
os.write(1, b"b" * 32768)
libc.write(1, ctypes.c_void_p(region), 4096)
`;
/** Reads what it has written before, each time that the pipe is full, which grows meanwhile, so that it holds something when it is locked. */
async function longOutput(reader: PipeReader, writer: ChildProcess): Promise<string> {
  let text = "";
  for (let times = 0; times < 6; times++) {
    await until("the pipe is full", () => waitsIn(writer, /pipe_write/));
    text += await reader.next();
  }
  await until("the pipe is locked", () => waitsIn(writer, /handle_userfault/));
  return text;
}

const waitsIn = ({ pid }: ChildProcess, where: RegExp): boolean => where.test(readFileSync(`/proc/${pid}/wchan`, "utf8"));

/** Starts that writer as a sandbox's, with a reader of its pipe. */
function startHoldingWriter() {
  const { readFd, writeFd } = openPipe();
  letWait(writeFd);
  const reader = new PipeReader(readFd, undefined, {});
  const writer = spawn("python3", ["-c", holdingWriter], { stdio: ["ignore", writeFd, "inherit"] });
  const exited = once(writer, "exit");
  closeSync(writeFd);
  return { reader, readFd, writer, exited };
}

const isRoot = process.getuid?.() === 0;

test("a sandbox whose pipe is locked keeps nobody waiting but itself", { skip: !isRoot && "only root may hold up the kernel" }, async () => {
  const { reader, writer, exited } = startHoldingWriter();
  const text = await longOutput(reader, writer);
  const rest = textOf(reader);
  // Another sandbox is read, this process works, and even closing waits for the thread that has the descriptor.
  const other = openPipe();
  const otherReader = new PipeReader(other.readFd, undefined, {});
  for (let times = 0; times < 3; times++) {
    const held = fill(other.writeFd, "c");
    let taken = 0;
    while (taken < held) taken += (await otherReader.next())?.length ?? 0;
  }
  await sleep(20);
  assert.equal(writer.exitCode ?? writer.signalCode, null, "this process stood still until the writer was gone");
  writer.kill("SIGKILL");
  await exited;
  assert.equal(text + (await rest), "a".repeat(9 * 65_536) + "b".repeat(32_768));
  for (const each of [reader, otherReader]) each.close();
  closeSync(other.writeFd);
});

test("a descriptor that another thread reads is closed after that", { skip: !isRoot && "only root may hold up the kernel" }, async () => {
  const { reader, writer, exited, readFd } = startHoldingWriter();
  await longOutput(reader, writer);
  const next = reader.next();
  await sleep(20);
  reader.close();
  assert.ok(existsSync(`/proc/self/fd/${readFd}`));
  writer.kill("SIGKILL");
  await exited;
  assert.equal(await next, undefined);
  await until("the pipe is closed", () => isClosed(readFd));
});

function isClosed(fd: number): boolean {
  try {
    readSync(fd, Buffer.alloc(1), 0, 1, null);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EBADF";
  }
}

test("what is skipped is counted, and what comes after it is read", async () => {
  const { readFd, writeFd } = openPipe();
  const reader = new PipeReader(readFd);
  const held = fill(writeFd, "a");
  let skipped = 0;
  while (skipped < held) skipped += (await reader.skip()) ?? Number.NaN;
  assert.equal(skipped, held);
  writeSync(writeFd, "after");
  assert.equal((await reader.next())?.toString(), "after");
  writeSync(writeFd, "more");
  closeSync(writeFd);
  assert.equal(await reader.skip(), 4);
  assert.equal(await reader.skip(), undefined);
  reader.close();
});
