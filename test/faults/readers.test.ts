/** Thousands of clients that open a stream and do not read, while others use the installation. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "../helpers/api.ts";
import { fixture } from "../helpers/fixture.ts";
import { residentBytes } from "../helpers/prepare.ts";
import { plain } from "../helpers/resilience.ts";
import { Mark } from "../helpers/sandboxes.ts";
import { startStack } from "../helpers/stack.ts";
import { Witness } from "../helpers/witness.ts";
import type { Fault } from "./adversary.ts";
import { between, type Random } from "./plan.ts";
import { endure } from "./trial.ts";

const MiB = 1024 ** 2;
const readers = 2_000;
const readersPerSandbox = 100;
const startsAtOnce = 16;
const staysMs = { least: 5_000, most: 15_000 };
/** What a part may hold for one reader, and what it may have grown by besides, with clients at work. */
const bytesPerReader = MiB / 8;
const growthBytesMax = 150 * MiB;

const settings = { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_EXECUTIONS_PER_SANDBOX: String(readersPerSandbox) };
const stack = await fixture(startStack({ name: "faults-readers", settings }));
const api = new Api(stack);
const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

/** A stream that nobody reads from, once its command has begun. */
async function openUnread(id: string, env: Record<string, string>): Promise<IncomingMessage> {
  const headers = { "x-api-key": stack.apiKey, "content-type": "application/json" };
  const call = request(`${stack.url}/v1/sandboxes/${id}/execute_async`, { method: "POST", agent, headers });
  call.on("error", () => {});
  call.end(JSON.stringify({ command: "exec yes abcdefghijklmnopqrstuvwxyz", env }));
  const [response] = (await once(call, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) assert.fail(`${response.statusCode} ${await text(response)}`);
  return response.on("error", () => {});
}

/** Opens all of them, and leaves them alone for a while. */
async function crowd(ids: readonly string[], random: Random): Promise<void> {
  const parts = [stack.gateway, stack.worker, stack.nats].map(({ spec, pid }) => ({ name: spec.name, pid, before: residentBytes(pid) }));
  const witness = await Witness.begin(stack, api);
  const mark = new Mark();
  const responses: IncomingMessage[] = [];
  try {
    const rest = Array.from({ length: readers }, (_, index) => ids[index % ids.length] as string).values();
    const open = async (): Promise<void> => {
      for (const id of rest) responses.push(await openUnread(id, mark.env));
    };
    await Promise.all(Array.from({ length: startsAtOnce }, open));
    await sleep(between(random, staysMs.least, staysMs.most));
    assert.equal(responses.filter(({ destroyed }) => !destroyed).length, readers, "nobody is cut off");
    await witness.expectUnharmed();
    const grown = parts.map(({ name, pid, before }) => ({ name, bytes: residentBytes(pid) - before }));
    console.log(`  ${readers} readers: grown by ${grown.map(({ name, bytes }) => `${name} ${Math.round(bytes / MiB)} MiB`).join(", ")}`);
    for (const { name, bytes } of grown) assert.ok(bytes < growthBytesMax + readers * bytesPerReader, `${name} has grown by ${Math.round(bytes / MiB)} MiB`);
  } finally {
    for (const response of responses) response.destroy();
  }
  await mark.gone();
  await witness.end();
  const gone = [stack.gateway, stack.worker].flatMap(({ lines }) => lines.filter((line) => line.includes('"peer_gone"')));
  assert.deepEqual(gone, [], "no part was held for gone");
}

const unread: Fault = {
  name: `${readers} clients that do not read`,
  cause: async (random) => {
    const ids: string[] = [];
    try {
      while (ids.length < readers / readersPerSandbox) ids.push(await api.create({ resources: { memory: 1_024, storage: 1 }, network: { access: "none" } }));
      await crowd(ids, random);
    } finally {
      for (const id of ids) await api.delete(id);
    }
  },
};

test(`${readers} clients that do not read cost little, and nobody else waits for them`, { timeout: 900_000 }, async () => {
  await endure(stack, { title: "readers", faults: () => [unread], growthBytesMax: growthBytesMax + readers * bytesPerReader });
});
