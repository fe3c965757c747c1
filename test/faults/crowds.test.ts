/** More than anybody should ask for at once: hundreds of clients that do not read, and a command that writes a million lines one by one. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Api, type Chunk, chunksOf } from "../helpers/api.ts";
import { fixture } from "../helpers/fixture.ts";
import { residentBytes } from "../helpers/prepare.ts";
import { plain } from "../helpers/resilience.ts";
import { Mark } from "../helpers/sandboxes.ts";
import { startStack } from "../helpers/stack.ts";
import { until } from "../helpers/until.ts";
import { Witness } from "../helpers/witness.ts";

const MiB = 1024 ** 2;
const readers = 400;
const readersPerSandbox = 40;
const startsAtOnce = 32;
const lines = 1_000_000;
const windowBytes = MiB / 16;
/** What a part may hold for one reader: a window of bytes under way, and ten times as much for pipes, connection and command. */
const bytesPerReader = 11 * windowBytes;
const growthBytesMax = readers * bytesPerReader;

const settings = { ...plain, SANDGATE_EXECUTIONS_PER_SANDBOX: String(readersPerSandbox + 20), SANDGATE_STREAM_WINDOW_BYTES: String(windowBytes) };
const stack = await fixture(startStack({ name: "crowds", settings }));
const api = new Api(stack);
const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

/** A stream that nobody reads from, once its command has begun. */
async function openUnread(id: string, env: Record<string, string>): Promise<IncomingMessage> {
  const call = request(`${stack.url}/v1/sandboxes/${id}/execute_async`, {
    method: "POST",
    agent,
    headers: { "x-api-key": stack.apiKey, "content-type": "application/json" },
  });
  call.on("error", () => {});
  call.end(JSON.stringify({ command: "exec yes abcdefghijklmnopqrstuvwxyz", env }));
  const [response] = (await once(call, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) assert.fail(`${response.statusCode} ${await text(response)}\n${stack.worker.lines.slice(-3).join("\n")}`);
  return response.on("error", () => {});
}

test("hundreds of clients that do not read cost each its window, and nobody else waits for them", async () => {
  const witness = await Witness.begin(stack, api);
  const parts = [stack.gateway, stack.worker, stack.nats].map(({ spec, pid }) => ({ name: spec.name, pid, before: residentBytes(pid), peak: 0 }));
  const watch = setInterval(() => {
    for (const part of parts) part.peak = Math.max(part.peak, residentBytes(part.pid) - part.before);
  }, 250);
  const mark = new Mark();
  const responses: IncomingMessage[] = [];
  try {
    const ids = await Promise.all(
      Array.from({ length: readers / readersPerSandbox }, () => api.create({ resources: { memory: 256, storage: 1 }, network: { access: "none" } })),
    );
    const rest = Array.from({ length: readers }, (_, index) => ids[index % ids.length] as string).values();
    const open = async (): Promise<void> => {
      for (const id of rest) responses.push(await openUnread(id, mark.env));
    };
    await Promise.all(Array.from({ length: startsAtOnce }, open));
    assert.equal(responses.length, readers);
    assert.equal(mark.living().length, readers);
    await sleep(5_000);
    await witness.expectUnharmed();
    const told = parts.map(({ name, peak }) => `${name} ${Math.round(peak / MiB)} MiB`).join(", ");
    console.log(`${readers} readers: grown by ${told}`);
    for (const { name, peak } of parts) assert.ok(peak < growthBytesMax, `${name} has grown by ${Math.round(peak / MiB)} MiB`);
  } finally {
    clearInterval(watch);
    for (const response of responses) response.destroy();
  }
  await mark.gone();
  await witness.end();
  await until("no call is in progress", async () => (await fetch(`${stack.url}/readyz`)).ok);
  await api.call("DELETE", "/v1/sandboxes/delete-all");
});

test("a million lines, each written by itself, arrive whole and in order beside other calls", async () => {
  const witness = await Witness.begin(stack, api);
  const id = await api.create();
  const before = [stack.gateway, stack.worker].map(({ pid }) => residentBytes(pid));
  const command = `python3 -c 'import os\nfor n in range(${lines}): os.write(1 + n % 2, b"%d\\n" % n)'`;
  const next = { stdout: 0, stderr: 1 };
  const rest = { stdout: "", stderr: "" };
  let last: Chunk | undefined;
  for await (const chunk of chunksOf(await api.stream(id, command))) {
    last = chunk;
    for (const name of ["stdout", "stderr"] as const) {
      const whole = (rest[name] + (chunk[name] ?? "")).split("\n");
      rest[name] = whole.pop() ?? "";
      for (const line of whole) {
        if (line !== String(next[name])) assert.fail(`${name} has ${line} instead of ${next[name]}`);
        next[name] += 2;
      }
    }
  }
  assert.deepEqual(last, { exit_code: 0 });
  assert.deepEqual(next, { stdout: lines, stderr: lines + 1 });
  await witness.end();
  for (const [index, { spec, pid }] of [stack.gateway, stack.worker].entries()) {
    const grown = residentBytes(pid) - (before[index] ?? 0);
    assert.ok(grown < 150 * MiB, `${spec.name} has grown by ${Math.round(grown / MiB)} MiB`);
  }
});
