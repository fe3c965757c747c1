/**
 * Makes a cluster of an installation's only NATS server and of those that wait for it. Until the cluster has everything that is
 * stored, the former store stays as it is, and a failure or a power cut on the way leads back to it.
 */
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { openStorage } from "../../shared/bus/jetstream.ts";
import { BucketWriter } from "../../shared/bus/kv.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { memberBucket } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Logger } from "../../shared/util/log.ts";
import { until } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { run } from "../base/run.ts";
import { isNats, Member, readMembers } from "../fleet/members.ts";
import { TemporaryServer } from "../supervisor/temporary-server.ts";
import { applyAlone, startServer, workersHere } from "./apply.ts";
import { openStorageBus } from "./copies.ts";
import { putAside, takeUpAgain } from "./former-store.ts";
import type { Node } from "./identity.ts";
import { openMemberBus, openMemberList } from "./member-list.ts";
import { moveStreams } from "./move.ts";
import { isPlaced, type Place, type PlacedNode, placeOf } from "./place.ts";
import { nodeHere } from "./registration.ts";
import { copiesFor, isComplete, storedStreams } from "./replicas.ts";

const nodesMin = 3;
const startMs = 60_000;
const completeMs = 120_000;
const pollMs = 250;

interface Work {
  readonly instance: Instance;
  readonly node: Node;
  readonly log: Logger;
  /** Told of each step. */
  readonly say: (line: string) => void;
}

/** @returns whether there was none before @throws {StartFailure} if it cannot be made; everything is then as before */
export async function formCluster(work: Work): Promise<boolean> {
  const members = await startOthers(work);
  if (!members) return false;
  const { instance, say } = work;
  say("Stopping the NATS server; calls get 503 until the cluster runs");
  await run(["systemctl", "stop", "sandgate-cluster.service", "sandgate-nats.service"]);
  try {
    await moveIntoCluster(work, members);
  } catch (error) {
    await takeUpAgain(instance);
    await run(["systemctl", "start", "sandgate-nats.service", "sandgate-cluster.service"]);
    throw error;
  }
  say("Starting the NATS server as a node of the cluster");
  await startServer(instance);
  await run(["systemctl", "start", "sandgate-cluster.service"]);
  await dropFormerStore(work);
  return true;
}

/** Has the servers of the other machines started. @returns all members, with the nodes active; undefined if there is a cluster */
async function startOthers({ instance, node, log, say }: Work): Promise<Member[] | undefined> {
  const place = await placeOf(instance, await readMembers(instance.paths));
  await using list = await openMemberList(instance, node, place?.servers ?? node.servers, log);
  const all = [...list.members.values()];
  const self = all.filter(isNats).find(({ id }) => id === node.id);
  if (self?.state === "active") return undefined;
  if (node.servers.length > 0) throw new StartFailure("This is done on the machine that has the NATS server now.");
  const own = await nodeHere(instance, node);
  const placed = [own as PlacedNode, ...all.filter(isPlaced).filter(({ id }) => id !== node.id)];
  if (placed.length < nodesMin) throw new StartFailure(tooFew(all.filter(isNats).length, placed.length));
  // They let nobody in who does not start as well. This machine itself goes on alone until the cluster is made.
  for (const member of placed) await list.members.put(member.id, { ...member, state: "starting" });
  const others = placed.slice(1);
  say(`Starting the NATS servers of ${others.map(({ place: { host } }) => host).join(" and ")}`);
  for (const { place } of others) {
    if (!(await until(() => answers(place), { timeoutMs: startMs, pollMs }))) throw new StartFailure(unreached(place));
  }
  const nodes = placed.map((member) => ({ ...member, state: "active" as const }));
  return [...all.filter((member) => !isNats(member)), ...all.filter((member) => isNats(member) && !isPlaced(member) && member.id !== node.id), ...nodes];
}

const tooFew = (known: number, placed: number): string =>
  `A cluster takes ${nodesMin} NATS servers, and there are ${placed}${known > placed ? ` (${known - placed} that were let in are not installed yet)` : ""}. ` +
  "Let further machines in first: sudo sandgate-admin join-token --role all";

const unreached = ({ host, clusterPort }: PlacedNode["place"]): string =>
  `The NATS server of ${host} cannot be reached at port ${clusterPort}; see there: journalctl -t sandgate-cluster -t sandgate-nats`;

/** Whether somebody listens for other nodes. */
function answers({ host, clusterPort }: PlacedNode["place"]): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: clusterPort, timeout: 2_000 });
    const end = (is: boolean): void => {
      socket.destroy();
      resolve(is);
    };
    socket
      .once("connect", () => end(true))
      .once("error", () => end(false))
      .once("timeout", () => end(false));
  });
}

async function moveIntoCluster({ instance, node, log, say }: Work, members: readonly Member[]): Promise<void> {
  await putAside(instance);
  const nodes = members.filter(isPlaced).filter(({ state }) => state === "active");
  const place: Place = { node, self: nodes.find(({ id }) => id === node.id), mode: "clustered", nodes, servers: [] };
  const wanted = { workerIds: await workersHere(instance), members };
  await using former = await TemporaryServer.start(instance, "former", { ...wanted, place: { ...place, mode: "alone" }, store: instance.paths.formerNats });
  await using cluster = await TemporaryServer.start(instance, "forming", { ...wanted, place });
  const copies = copiesFor(nodes.length) ?? 1;
  const buses = async ({ url }: TemporaryServer): Promise<[Bus, Bus]> => [
    await openStorageBus(instance, node, [url], log),
    await openMemberBus(instance, node, [url], log),
  ];
  const [from, to] = [await buses(former), await buses(cluster)];
  try {
    say("Waiting until the servers have found each other");
    if (!(await until(() => takes(to[0], copies), { timeoutMs: startMs, pollMs })))
      throw new StartFailure("The NATS servers do not form a cluster; see: journalctl -t sandgate-nats on each machine");
    for (const index of [0, 1] as const) await moveStreams(from[index], to[index], copies, (name) => say(`Moving ${name}`));
    // From here on it is a cluster: this machine remembers it first, and goes on as a node even if it is interrupted now.
    await applyAlone(instance, members);
    await tellOthers(to[1], members).catch((err) => log.warn({ err }, "the other machines are told by this one's service"));
  } finally {
    for (const bus of [...from, ...to]) await bus.close();
  }
}

async function tellOthers(bus: Bus, members: readonly Member[]): Promise<void> {
  const list = await BucketWriter.open(bus, memberBucket, checker(Member));
  for (const member of members) await list.put(member.id, member);
}

/** Whether the cluster takes something of which there are so many copies. */
async function takes(bus: Bus, copies: number): Promise<boolean> {
  const name = "sandgate_forming";
  try {
    const { jsm } = await openStorage(bus);
    await jsm.streams.add({ name, subjects: ["sandgate.forming"], num_replicas: copies });
    await jsm.streams.delete(name);
    return true;
  } catch {
    return false;
  }
}

/** Removes the former store once all copies are complete. */
async function dropFormerStore({ instance, node, log, say }: Work): Promise<void> {
  const { paths } = instance;
  const place = await placeOf(instance, await readMembers(paths));
  const bus = await openStorageBus(instance, node, place?.servers ?? [], log);
  try {
    say("Waiting until every server has a copy of everything");
    const areComplete = async (): Promise<boolean> => {
      const streams = await storedStreams(bus).catch(() => []);
      return streams.length > 0 && streams.every(isComplete);
    };
    if (await until(areComplete, { timeoutMs: completeMs, pollMs })) await rm(paths.formerNats, { recursive: true, force: true });
    else say(`Not all copies are complete yet. When they are (sandgate-admin cluster), remove ${paths.formerNats}`);
  } finally {
    await bus.close();
  }
}
