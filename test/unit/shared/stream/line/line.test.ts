/** One end of a line, with whatever may be at the other one. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { bareFrame, kinds, type StreamFrame, streamFrame } from "../../../../../shared/stream/line/frames.ts";
import { Line } from "../../../../../shared/stream/line/line.ts";
import { fixture } from "../../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";
import { until } from "../../../../helpers/until.ts";

const folder = fixture(temporaryFolder("line"));
let names = 0;

/** The two ends of a Unix socket. */
async function ends(): Promise<[Socket, Socket]> {
  const path = join(folder.path, `${names++}.sock`);
  const server = createServer().listen(path);
  await once(server, "listening");
  const far = connect(path);
  const [near] = (await once(server, "connection")) as [Socket];
  server.close();
  far.on("error", () => {});
  return [near, far];
}

/** A line, what it has heard, and the bare other end. */
async function openLine(stallMs?: number) {
  const [near, far] = await ends();
  const heard: string[] = [];
  const broken: { untaken: readonly StreamFrame[]; why: Error }[] = [];
  const line = new Line(
    "peer",
    near,
    {
      heard: (streamId, message) => heard.push(`${streamId}:${Buffer.from(message)}`),
      broken: (_line, untaken, why) => broken.push({ untaken, why }),
    },
    stallMs,
  );
  return { line, near, far, heard, broken };
}

const length = (bytes: number): Buffer => {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(bytes);
  return header;
};

for (const [what, bytes] of Object.entries({
  "a frame without a length": length(0),
  "a frame of four gigabytes": length(0xffff_ffff),
  "a frame of no known kind": Buffer.concat([length(1), Buffer.from([9])]),
  "a frame that names no stream": Buffer.concat([length(2), Buffer.from([kinds.stream, 0])]),
  "an answer to what was not asked": bareFrame(kinds.taken),
})) {
  test(`${what} ends the line, and nothing else`, async () => {
    const { line, far, broken } = await openLine();
    far.write(bytes);
    await once(far, "close");
    assert.equal(line.isOpen, false);
    assert.equal(broken.length, 1);
  });
}

test("what the other end has not taken is handed back in order when it goes, and nothing that it has taken", async () => {
  const { line, far, broken } = await openLine();
  const payload = Buffer.alloc(300 * 1024);
  // Enough to be asked about.
  line.send("st_taken", [payload]);
  let received = Buffer.alloc(0);
  far.on("data", (bytes) => {
    received = Buffer.concat([received, bytes as Buffer]);
  });
  await until("the question", () => received.subarray(-5).equals(bareFrame(kinds.sync)));
  far.write(bareFrame(kinds.taken));
  far.write(streamFrame("st_after", [Buffer.from("x")]).bytes);
  await until("the answer", () => received.length > payload.length);
  line.send("st_a", [Buffer.from("1")]);
  line.send("st_b", [Buffer.from("2"), Buffer.from("3")]);
  await new Promise((resolve) => setImmediate(resolve));
  far.destroy();
  await until("the end", () => broken.length > 0);
  const untaken = broken[0]?.untaken.map(({ streamId, message }) => `${streamId}:${message}`);
  assert.deepEqual(untaken?.slice(-2), ["st_a:1", "st_b:23"]);
  assert.ok(!untaken?.some((one) => one.startsWith("st_taken")), "it was taken");
});

test("an other end that takes nothing ends the line, and those that wait for their turn go on", async () => {
  const { line, far, broken } = await openLine(300);
  far.pause();
  const waited: unknown[] = [];
  for (let sent = 0; sent < 100; sent++) {
    const turn = line.turn();
    if (turn) {
      waited.push(await turn);
      break;
    }
    line.send("st_1", [Buffer.alloc(64 * 1024)]);
  }
  assert.equal(waited.length, 1, "only so much may wait");
  assert.equal(line.isOpen, false);
  assert.ok((broken[0]?.untaken.length ?? 0) >= 32);
});

test("an other end that says nothing any more ends the line, also when little was sent", async () => {
  const { line, far, broken } = await openLine(200);
  far.pause();
  line.send("st_1", [Buffer.from("little")]);
  await until("the end", () => !line.isOpen);
  assert.deepEqual(
    broken[0]?.untaken.map(({ message }) => `${message}`),
    ["little"],
  );
});

test("a flood of small frames leaves the event loop to others", async () => {
  const { far, heard } = await openLine();
  const frame = streamFrame("s", [Buffer.from("x")]).bytes;
  const frames = 20_000;
  far.write(Buffer.concat(Array.from({ length: frames }, () => frame)));
  const seen: number[] = [];
  while (heard.length < frames) {
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(heard.length);
  }
  const steps = seen.map((count, index) => count - (seen[index - 1] ?? 0));
  assert.ok(Math.max(...steps) <= 3_000, `${Math.max(...steps)} in one turn`);
  assert.deepEqual([...new Set(heard)], ["s:x"]);
  far.destroy();
});

test("a line that is closed in order has said everything", async () => {
  const { line, far, broken } = await openLine();
  const heard: string[] = [];
  const other = new Line("peer", far, { heard: (_streamId, message) => heard.push(Buffer.from(message).toString()), broken: () => {} });
  for (let number = 0; number < 100; number++) line.send("st_1", [Buffer.from(`${number}`)]);
  await line.close();
  assert.equal(heard.length, 100);
  assert.deepEqual(broken[0]?.untaken, []);
  await until("the other end to know", () => !other.isOpen);
});
