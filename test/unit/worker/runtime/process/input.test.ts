/** Input of commands, through a real pipe. */
import assert from "node:assert/strict";
import { closeSync, readSync } from "node:fs";
import { test } from "node:test";
import { openPipe } from "../../../../../shared/util/libc.ts";
import { InputWriter } from "../../../../../worker/runtime/process/input.ts";
import { until } from "../../../../helpers/until.ts";

/** Reads what is available; "end" at the end of the input. */
function read(fd: number): Buffer | "end" {
  const chunk = Buffer.alloc(10_000);
  try {
    const length = readSync(fd, chunk, 0, chunk.length, null);
    return length === 0 ? "end" : chunk.subarray(0, length);
  } catch {
    return Buffer.alloc(0); // EAGAIN
  }
}

function open(): { writer: InputWriter; readFd: number; taken: () => number } {
  const { readFd, writeFd } = openPipe();
  let taken = 0;
  const writer = new InputWriter({ fd: writeFd, endOfFile: undefined }, (bytes) => {
    taken += bytes;
  });
  return { writer, readFd, taken: () => taken };
}

test("input waits for a command that is slow to take it, and arrives whole and in order before its end", async () => {
  const { writer, readFd, taken } = open();
  const parts = Array.from({ length: 50 }, (_, index) => Buffer.alloc(1 + index * 1_000, index));
  for (const part of parts) writer.write(part);
  writer.end();
  const whole = Buffer.concat(parts);
  assert.ok(taken() > 0 && taken() < whole.length, "a pipe takes a part of it");
  const received: Buffer[] = [];
  await until("the end of the input", () => {
    for (let chunk = read(readFd); chunk.length > 0; chunk = read(readFd)) {
      if (chunk === "end") return true;
      received.push(chunk as Buffer);
    }
    return false;
  });
  assert.ok(Buffer.concat(received).equals(whole));
  assert.equal(taken(), whole.length);
  closeSync(readFd);
});

test("input that nobody will read counts as taken, so that its client does not wait forever", async () => {
  const { writer, readFd, taken } = open();
  writer.write(Buffer.alloc(200_000));
  closeSync(readFd);
  await until("it is given up", () => taken() === 200_000);
  writer.write(Buffer.alloc(5));
  assert.equal(taken(), 200_005);
  writer.close();
  writer.close();
});

test("nothing is written after the end", async () => {
  const { writer, readFd, taken } = open();
  writer.write(Buffer.from("a"));
  writer.end();
  writer.write(Buffer.from("b"));
  assert.equal((read(readFd) as Buffer).toString(), "a");
  assert.equal(read(readFd), "end");
  assert.equal(taken(), 2);
  closeSync(readFd);
});
