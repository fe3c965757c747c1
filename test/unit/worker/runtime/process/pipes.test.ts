/** Readers of real pipes. */
import assert from "node:assert/strict";
import { closeSync, readSync, writeSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openPipe } from "../../../../../shared/util/libc.ts";
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
