/** Clients that go away or read slowly: what that costs the worker and the gateway. On an installation of its own. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Api, type Chunk } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { residentBytes } from "../../helpers/prepare.ts";
import { Mark } from "../../helpers/sandboxes.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const MiB = 1024 ** 2;
const growthBytesMax = 100 * MiB;

const stack = await fixture(startStack({ name: "clients" }));
const api = new Api(stack);
const id = await api.create();

const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Files in the worker's runtime directory that belong to the start of one command. */
function startFiles(): string[] {
  const dir = join(stack.instance.runtimeDir, "sandgate", stack.worker.spec.env.SANDGATE_WORKER_ID ?? "");
  return readdirSync(dir).filter((file) => /^x\d+\./.test(file));
}

/** A stream whose body is read by hand, so that nothing is read ahead. */
const openStream = (command: string, env: Record<string, string>): Promise<IncomingMessage> => open("POST", "execute_async", JSON.stringify({ command, env }));

async function open(method: "GET" | "POST", path: string, body?: string): Promise<IncomingMessage> {
  const headers = { "x-api-key": stack.apiKey, ...(body === undefined ? {} : { "content-type": "application/json" }) };
  const call = request(`${stack.url}/v1/sandboxes/${id}/${path}`, { method, headers });
  call.on("error", () => {});
  call.end(body);
  const [response] = (await once(call, "response")) as [IncomingMessage];
  return response.on("error", () => {});
}

const commands: Record<string, string> = {
  quiet: "sleep 600",
  "writing without pause": "yes",
  "that daemonised": "setsid sleep 600 > /dev/null 2>&1 & (nohup sleep 600 &) ; sleep 600",
  "that ignores signals": "trap '' TERM INT HUP PIPE; sleep 600; sleep 600",
};
for (const [kind, command] of Object.entries(commands)) {
  test(`a client that hangs up ends a command ${kind}, with its whole tree`, async () => {
    const mark = new Mark();
    const response = await openStream(`echo ready; ${command}`, mark.env);
    await once(response, "readable");
    assert.ok(mark.living().length > 0);
    response.destroy();
    await mark.gone();
  });
}

test("a client that never read and hangs up ends a command that is held back", async () => {
  const mark = new Mark();
  const response = await openStream("yes", mark.env);
  await until("the command is held back", async () => {
    const before = writtenBytes(mark);
    await sleep(300);
    return before > 0 && before === writtenBytes(mark);
  });
  response.destroy();
  await mark.gone();
});

test("clients that do not read are sent little, wherever that waits", async () => {
  const mark = new Mark();
  const responses = await Promise.all(Array.from({ length: 20 }, () => openStream("exec yes abcdefghijklmnopqrstuvwxyz", mark.env)));
  const written = await until("all commands are held back", async () => {
    const before = writtenBytes(mark);
    await sleep(300);
    return before > 0 && before === writtenBytes(mark) && before;
  });
  // The pipe, the window, the buffers of the gateway's connection and of this client, and what is on its way between them.
  assert.ok(written < responses.length * MiB, `the commands could write ${Math.round(written / 1024)} KiB`);
  for (const response of responses) response.destroy();
  await mark.gone();
});

test("clients that read nothing for longer than the server's own patience lasts get everything when they read on", async () => {
  const bytes = 8 * MiB;
  await api.execute(id, `head -c ${bytes} /dev/zero > /tmp/zeros`);
  const [output, file] = await Promise.all([openStream(`head -c ${bytes} /dev/zero | tr '\\0' a`, {}), open("GET", "download?path=/tmp/zeros")]);
  await sleep(20_000);
  const { last } = await readAll(output);
  assert.deepEqual(last, { exit_code: 0 });
  let readBytes = 0;
  for await (const part of file as AsyncIterable<Buffer>) readBytes += part.length;
  assert.equal(readBytes, bytes);
});

test("a client of execute that hangs up ends the command", async () => {
  const mark = new Mark();
  const hangUp = new AbortController();
  const body = JSON.stringify({ command: "sleep 600", env: mark.env });
  const call = api.raw("POST", `/v1/sandboxes/${id}/execute`, body, { "content-type": "application/json" }, hangUp.signal);
  await until("the command runs", () => mark.living().length > 0);
  hangUp.abort();
  await assert.rejects(call);
  await mark.gone();
});

test("clients that hang up at any moment of a start leave nothing running", async () => {
  const mark = new Mark();
  for (let round = 0; round < 30; round++) {
    const hangUp = new AbortController();
    const call = api.stream(id, "sleep 600", { env: mark.env }, hangUp.signal).catch(() => {});
    await sleep(round);
    hangUp.abort();
    await call;
  }
  await mark.gone();
  await until("the places are free", async () => (await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status === 200);
});

test("200 executions, failed starts and hang-ups leave no open file and no file behind", async () => {
  const round = async (): Promise<void> => {
    await Promise.all(Array.from({ length: 10 }, (_, n) => api.execute(id, `echo ${n}`)));
    await Promise.all(Array.from({ length: 5 }, () => api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true", working_dir: "/none" })));
    const mark = new Mark();
    const responses = await Promise.all(Array.from({ length: 10 }, () => openStream("echo ready; sleep 600", mark.env)));
    for (const response of responses) response.destroy();
    await mark.gone();
  };
  const [worker, gateway] = [stack.worker.pid, stack.gateway.pid];
  await round();
  await round();
  const before = [openFiles(worker), openFiles(gateway)] as const;
  for (let i = 0; i < 6; i++) await round();
  await until("the open files are as many as before", () => openFiles(worker) <= before[0] + 3 && openFiles(gateway) <= before[1] + 12);
  await until("no file of a start is left", () => startFiles().length === 0);
});

test("worker and gateway stay small while a fast reader takes twice what they may grow by and a slow one holds its command back", async () => {
  await readAll(await openStream("yes warm-up | head -c 30M", {}));
  await sleep(1_000);
  const parts = [stack.worker, stack.gateway].map((part) => ({ part, idleBytes: residentBytes(part.pid) }));
  const watch = setInterval(() => {
    for (const { part, idleBytes } of parts) peak.set(part.spec.name, Math.max(peak.get(part.spec.name) ?? 0, residentBytes(part.pid) - idleBytes));
  }, 100);
  const peak = new Map<string, number>();
  const mark = new Mark();
  try {
    const { bytes, last } = await readAll(await openStream("yes abcdefghijklmnopqrstuvwxyz0123456789 | head -c 210M", {}));
    assert.ok(bytes > 2 * growthBytesMax);
    assert.deepEqual(last, { exit_code: 0 });
    const slow = await openStream("yes | head -c 5G", mark.env);
    await readSlowly(slow, 15_000);
    assert.ok(mark.living().length > 0, "the command waits for its reader");
    assert.ok(writtenBytes(mark) < 200 * MiB);
    slow.destroy();
  } finally {
    clearInterval(watch);
  }
  for (const [name, bytes] of peak) assert.ok(bytes < growthBytesMax, `${name} grew by ${Math.round(bytes / MiB)} MiB`);
  await mark.gone();
});

async function readAll(response: IncomingMessage): Promise<{ bytes: number; last: Chunk }> {
  let bytes = 0;
  let tail = "";
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    tail = (tail + part.subarray(-200).toString("latin1")).slice(-200);
  }
  return { bytes, last: JSON.parse(tail.trimEnd().split("\n").at(-1) ?? "") as Chunk };
}

/** Takes a mebibyte a second. */
async function readSlowly(response: IncomingMessage, durationMs: number): Promise<void> {
  const startedAtMs = Date.now();
  for (let readBytes = 0; Date.now() - startedAtMs < durationMs; ) {
    readBytes += (response.read() as Buffer | null)?.length ?? 0;
    await sleep(Math.max(50, (readBytes / MiB) * 1_000 - (Date.now() - startedAtMs)));
  }
}

/** Bytes that the marked processes have written. */
function writtenBytes(mark: Mark): number {
  return mark.living().reduce((sum, pid) => sum + Number(/^wchar: (\d+)/m.exec(ioOf(pid))?.[1] ?? 0), 0);
}

function ioOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/io`, "utf8");
  } catch {
    return ""; // The process has gone.
  }
}
