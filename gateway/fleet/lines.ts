/**
 * A line to each worker of this machine: all streams between the two go over one Unix socket instead of NATS, which costs a small
 * part of the CPU time. The worker is asked over NATS to come to this gateway's socket, with a token that nobody else is told. So
 * nobody else can take its place, and no worker can make this gateway connect to anything.
 */
import { randomBytes } from "node:crypto";
import { chmod, readdir, rm, stat } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { ask } from "../../shared/bus/calls.ts";
import { lineTokenBytes, lineTokenLetters } from "../../shared/bus/contract/lines.ts";
import { processOfWorker } from "../../shared/bus/subjects.ts";
import { receive } from "../../shared/stream/line/introduction.ts";
import { inBackground } from "../../shared/util/background.ts";
import { backoffMs } from "../../shared/waiting.ts";
import type { Base } from "../base.ts";

/** Connections whose token has not come yet. Nobody but the workers of this machine can make any. */
const strangersMax = 64;
/** The pauses between attempts to get a worker onto a line; streams go over NATS meanwhile. */
const again = { firstMs: 500, maxMs: 60_000 };
/** What others than the owner and its group may do in the folder. */
const others = 0o007;

type Parts = Pick<Base, "config" | "id" | "bus" | "peers" | "hub" | "log">;

interface Attempts {
  failed: number;
  notBeforeMs: number;
}

/** Listens, and asks workers that come, or whose line is missed. @returns a function that ends this when all that was sent is taken */
export async function openLines(parts: Parts): Promise<() => Promise<void>> {
  const { config, log, hub, peers } = parts;
  const lines = new WorkerLines(parts);
  const stop = config.linesDir
    ? await lines.listen(config.linesDir).catch((err: unknown) => void log.warn({ event: "no_lines", err }, cannotListen))
    : undefined;
  if (!stop) return async () => {};
  const seek = (peer: string): void => inBackground(log, "a worker could not be asked for a line", () => lines.seek(peer));
  peers.onCome(({ peer }) => seek(peer));
  peers.onGone((peer) => lines.forget(peer));
  hub.lines.onMissed(seek);
  for (const { peer } of peers.present()) seek(peer);
  return async () => {
    stop();
    await hub.lines.close();
  };
}

const cannotListen = "there is no Unix socket for the workers of this machine (is its path longer than 107 bytes?); their streams go over NATS";

class WorkerLines {
  readonly #parts: Parts;
  readonly #name: string;
  /** Who was given a token that nobody has shown yet. */
  readonly #expected = new Map<string, string>();
  readonly #attempts = new Map<string, Attempts>();
  #strangers = 0;
  #isStopped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#name = `${parts.id}.sock`;
  }

  /** @returns what ends it. @throws {Error} if it cannot listen */
  async listen(dir: string): Promise<() => void> {
    if (((await stat(dir)).mode & others) !== 0) throw new Error(`${dir} can be entered by everybody`);
    await removeForsaken(dir);
    const path = join(dir, this.#name);
    const server = createServer((socket) => this.#come(socket));
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
    server.on("error", (err) => this.#parts.log.error({ err }, "the socket for workers failed"));
    // Who comes this far may enter the folder.
    await chmod(path, 0o666);
    return () => {
      this.#isStopped = true;
      server.close();
    };
  }

  /** Asks a worker of this machine onto a line, unless it has just been asked in vain. */
  async seek(peer: string): Promise<void> {
    const { hub, peers, log } = this.#parts;
    const attempts = this.#attempts.get(peer) ?? { failed: 0, notBeforeMs: 0 };
    if (this.#isStopped || hub.lines.has(peer) || performance.now() < attempts.notBeforeMs || !peers.isNearbyWorker(peer)) return;
    // Nor while it is being asked.
    attempts.notBeforeMs = Number.POSITIVE_INFINITY;
    this.#attempts.set(peer, attempts);
    try {
      await this.#ask(peer);
      attempts.failed = 0;
    } catch (err) {
      log.debug({ err, peer }, "a worker does not come onto a line");
      attempts.failed++;
    } finally {
      attempts.notBeforeMs = performance.now() + backoffMs(attempts.failed, again);
    }
  }

  forget(peer: string): void {
    this.#attempts.delete(peer);
  }

  async #ask(peer: string): Promise<void> {
    const { bus, hub, peers } = this.#parts;
    const token = randomBytes(lineTokenBytes).toString("hex");
    this.#expected.set(token, peer);
    try {
      await peers.whilePresent(peer, ask(bus, "line", processOfWorker(peer), { peer: hub.peer, socket: this.#name, token }));
    } finally {
      this.#expected.delete(token);
    }
  }

  #come(socket: Socket): void {
    socket.on("error", () => {});
    if (this.#strangers >= strangersMax) return void socket.destroy();
    this.#strangers++;
    receive(socket, lineTokenLetters, (token) => this.#admit(token))
      .catch((err: unknown) => this.#parts.log.info({ event: "line_refused", err }, "somebody came to the socket for workers and was not let in"))
      .finally(() => this.#strangers--);
  }

  #admit(token: string): ((socket: Socket) => void) | undefined {
    const peer = this.#expected.get(token);
    if (peer === undefined) return undefined;
    this.#expected.delete(token);
    return (socket) => this.#parts.hub.lines.add(peer, socket);
  }
}

/** Removes the sockets of gateways that were killed. */
async function removeForsaken(dir: string): Promise<void> {
  const sockets = (await readdir(dir)).filter((name) => name.endsWith(".sock")).map((name) => join(dir, name));
  for (const path of sockets) if (await isForsaken(path)) await rm(path, { force: true });
}

function isForsaken(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
  });
}
