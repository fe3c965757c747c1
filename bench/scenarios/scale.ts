/**
 * A gateway of a large installation: real NATS and real gateways, and 200 workers that only lack containers. Everything runs on one
 * machine, so that what a gateway uses of its CPU says more than the time of a call.
 */
import { once } from "node:events";
import WebSocket from "ws";
import { subprotocol } from "../../shared/stream/session/protocol.ts";
import { newId } from "../../shared/util/ids.ts";
import { pause } from "../../shared/waiting.ts";
import { secretsOf } from "../../systemd/supervisor/bus-identities.ts";
import { residentBytes } from "../../test/helpers/prepare.ts";
import { type Stack, startStack } from "../../test/helpers/stack.ts";
import { HttpClient } from "../http.ts";
import { httpLoad } from "../http-load.ts";
import { preferParts } from "../installation.ts";
import { inParallel, timed } from "../measure.ts";
import type { FleetOrder } from "../peers/fleet.ts";
import { startBareServer, startPeer } from "../peers/peer.ts";
import { compare, own, type Row, rowOf } from "../rows.ts";
import { percentile } from "../statistics.ts";
import { atOnce, create, listPath, MB, ofMany, sandboxCount, settleMs, workerCount } from "./many.ts";
import { roundsOf, type Setting } from "./setting.ts";

const socketCount = 10_000;
const roundS = 1;

export const gatewaysTask = "list of two gateways, by their CPU time";
export const oneGateway = "one gateway beside another busy server";
export const socketsTask = `${socketCount.toLocaleString("en")} idle WebSockets`;

export async function scale(setting: Setting): Promise<Row[]> {
  const { say } = setting;
  const ids = Array.from({ length: workerCount }, (_, index) => `played-${index}`);
  const limits = { SANDGATE_ENTERPRISE_SANDBOXES: String(2 * sandboxCount), SANDGATE_SESSION_SOCKETS_MAX: String(socketCount) };
  const stack = await startStack({ name: "bench-scale", workers: 0, otherWorkers: ids, gateways: 2, settings: limits });
  try {
    preferParts(stack);
    say(`starting ${workerCount} workers`);
    const fleet = await startPeer("fleet.ts", JSON.stringify(orderOf(stack, ids)));
    const api = new HttpClient(stack.url, stack.apiKey);
    try {
      await Promise.all(stack.urls.map((url) => stack.ready(url)));
      return await measure(setting, stack, api);
    } finally {
      api.close();
      fleet.stop();
    }
  } finally {
    await stack[Symbol.asyncDispose]();
  }
}

function orderOf({ natsUrl, instance }: Stack, ids: readonly string[]): FleetOrder {
  const secrets = secretsOf(instance);
  const workers = ids.map((id) => ({ id, secretsFile: secrets.worker(id) }));
  return { natsUrl: `nats://${new URL(natsUrl).host}`, natsCa: secrets.certificate, workers };
}

async function measure(setting: Setting, stack: Stack, api: HttpClient): Promise<Row[]> {
  // In this order: memory that is free again after a load would hide what is taken next.
  return [...(await idleSockets(setting, stack, api)), ...(await ofMany(setting, stack, api)), ...(await byGateways(setting, stack))];
}

/**
 * What gateways answer for each second of CPU time, which is what they would answer if each had a CPU of its own. Beside the one
 * gateway a bare server is as busy as the other gateway would be, because a machine whose CPUs are all busy is slower.
 */
async function byGateways(setting: Setting, { urls, gateways, apiKey }: Stack): Promise<Row[]> {
  const hello = await startBareServer("hello.ts");
  const perCpuSecond = async (url: string | undefined, pid = 0): Promise<number> =>
    (await httpLoad({ url: url + listPath, pid, headers: { "x-api-key": apiKey }, durationS: roundS })).perCpuSecond;
  const gateway = (index: number): Promise<number> => perCpuSecond(urls[index], gateways[index]?.pid);
  const beside = async (index: number): Promise<number> => (await Promise.all([gateway(index), perCpuSecond(`http://127.0.0.1:${hello.port}`, hello.pid)]))[0];
  const msPerCall = (perSecond: number): { ms: number } => ({ ms: 1_000 / perSecond });
  const contenders = [
    { name: own, measure: async () => msPerCall((await Promise.all([gateway(0), gateway(1)])).reduce((sum, rate) => sum + rate)) },
    // One of them counts for the key, and the other one asks it: the one that does better stands for a gateway that is alone.
    { name: oneGateway, measure: async () => msPerCall(Math.max(await beside(0), await beside(1))) },
  ] as const;
  const rate = (ms: readonly number[]) => ({ value: 1_000 / percentile(ms, 0.5), unit: "calls/s" as const });
  try {
    return await compare(gatewaysTask, contenders, roundsOf(setting, gatewaysTask, { share: 0.4, warmUp: 1 }), rate);
  } finally {
    hello.stop();
  }
}

/** Clients of sessions in which nothing happens. */
async function idleSockets({ signal, say }: Setting, { gateway, url, apiKey }: Stack, api: HttpClient): Promise<Row[]> {
  const { id } = await create(api);
  const before = residentBytes(gateway.pid);
  const sockets: WebSocket[] = [];
  try {
    const { latencies } = await inParallel(atOnce, socketCount, () => {
      signal.throwIfAborted();
      if (sockets.length % 1_000 === 0) say(`${socketsTask}: ${sockets.length} are open`);
      const socket = new WebSocket(`${url.replace("http", "ws")}/v1/sandboxes/${id}/session`, [subprotocol], {
        headers: { "x-api-key": apiKey },
        perMessageDeflate: false,
      });
      sockets.push(socket);
      return timed(() => attached(socket));
    });
    await pause(settleMs, signal);
    const open = sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length;
    if (open !== socketCount) throw new Error(`only ${open} of ${socketCount} WebSockets stayed open`);
    return [rowOf(socketsTask, own, latencies, { use: { value: (residentBytes(gateway.pid) - before) / MB, unit: "MB" } })];
  } finally {
    for (const socket of sockets) socket.terminate();
  }
}

/** Resolves when the session has told the client that it is attached. @throws {Error} if it is not */
async function attached(socket: WebSocket): Promise<void> {
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "attach", session_id: newId("session") }));
  const [message] = (await once(socket, "message")) as [Buffer];
  if (!message.includes('"started"')) throw new Error(`the gateway said ${message}`);
}
