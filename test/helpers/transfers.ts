/** Transfers of all kinds between a gateway and a worker, and the ways that they took. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Way } from "../../shared/stream/line/lines.ts";
import { type Api, collect } from "./api.ts";
import { expectOk } from "./expect.ts";
import { download, sha256, uploadRaw } from "./files.ts";
import { parseMetrics } from "./prometheus.ts";
import { start } from "./sessions.ts";
import type { Stack } from "./stack.ts";
import { until } from "./until.ts";

const MiB = 1024 * 1024;

/** The numbers from 1 on, as `seq` prints them. */
const linesOf = (count: number): string => `${Array.from({ length: count }, (_, index) => index + 1).join("\n")}\n`;

export type Ways = Readonly<Record<Way, number>>;

/** How many streams went each way. */
export async function waysOf(metricsPort: number): Promise<Ways> {
  // A connection that is kept could be closed by the other side just when it is used again.
  const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { headers: { connection: "close" } });
  const metrics = parseMetrics(await response.text());
  const count = (way: Way): number => metrics.get("sandgate_streams_total")?.samples.find(({ labels }) => labels.way === way)?.value ?? Number.NaN;
  return { socket: count("socket"), tls: count("tls"), nats: count("nats") };
}

/** Resolves when new streams with a sandbox go this way. */
export async function untilInUse(way: Way, api: Api, id: string, metricsPort: number): Promise<void> {
  await until(`streams go this way: ${way}`, async () => {
    const before = await waysOf(metricsPort);
    await api.execute(id, "true");
    return (await waysOf(metricsPort))[way] > before[way];
  });
}

/** Kills the worker of a stack while it sends the output of a sandbox, which ends with an error then, and starts it again. */
export async function loseWorkerInStream(stack: Stack, api: Api, id: string): Promise<void> {
  const reading = collect(await api.stream(id, "seq 1 1000; sleep 1000"));
  await until("the command runs", async () => (await api.execute(id, "pgrep -x sleep")).exit_code === 0);
  await stack.worker.kill9();
  const { last, stdout } = await reading;
  assert.equal(last?.code, "worker_lost");
  assert.ok(linesOf(1_000).startsWith(stdout));
  await stack.worker.start();
  await stack.ready();
}

async function outputOf(api: Api, id: string, command: string): Promise<string> {
  const { stdout, last } = await collect(await api.stream(id, command));
  assert.deepEqual(last, { exit_code: 0 });
  return stdout;
}

/** One transfer of each kind with a sandbox, which fails unless each byte arrives once. */
export const transfersOf = (api: Api, id: string): Readonly<Record<string, () => Promise<void>>> => ({
  "output of a command": async () => assert.ok((await outputOf(api, id, "seq 1 1000000")) === linesOf(1_000_000)),
  "output of a session": async () => {
    const session = await start(api, id, { command: "seq 1 800000", tty: false });
    await session.closed();
    assert.deepEqual([session.holes, session.exit?.exit_code], [[], 0]);
    assert.ok(session.text[1] === linesOf(800_000));
  },
  "input of a session": async () => {
    const input = randomBytes(8 * MiB);
    const session = await start(api, id, { command: "sha256sum", tty: false });
    const taken = (): number => Math.max(0, ...session.messages.map((message) => (message.type === "input_ack" ? message.offset : 0)));
    for (let at = 0; at < input.length; at += MiB / 4) {
      await until("room for more input", () => at - taken() <= MiB / 2);
      session.type(input.subarray(at, at + MiB / 4));
    }
    session.send({ type: "stdin_close" });
    await session.closed();
    assert.equal(session.text[1].split(" ")[0], sha256(input));
  },
  "an upload": async () => {
    const bytes = randomBytes(8 * MiB);
    expectOk(await uploadRaw(api, id, "/root/up", bytes));
    assert.equal((await api.execute(id, "sha256sum < /root/up")).stdout.split(" ")[0], sha256(bytes));
  },
  "a download": async () => {
    await api.execute(id, "head -c 8388608 /dev/urandom > /root/down");
    const { body } = await download(api, id, "/root/down");
    assert.equal((await api.execute(id, "sha256sum < /root/down")).stdout.split(" ")[0], sha256(body));
  },
});
