/** Lines between processes, with something between their ends that holds up and loses what is on them. */
import { chmodSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { TemporaryFolder } from "./folder.ts";
import type { Member } from "./streams.ts";
import { until } from "./until.ts";

/** Passes connections to a Unix socket on to another one. */
export class LineProxy implements Disposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Passes on so many bytes at a time. */
  pieceBytes = Number.POSITIVE_INFINITY;
  /** How many bytes it has passed on. */
  passedBytes = 0;
  #isHolding = false;
  #holding: { atBytes: number; begun: () => void } | undefined;

  private constructor(target: string) {
    this.#server = createServer((socket) => {
      const other = connect(target);
      for (const [from, to] of [
        [socket, other],
        [other, socket],
      ] as const) {
        this.#sockets.add(from);
        from.on("error", () => {}).on("close", () => to.destroy());
        from.on("data", (bytes) => this.#pass(bytes as Buffer, to));
      }
    });
  }

  static async listen(path: string, target: string): Promise<LineProxy> {
    const proxy = new LineProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(path, resolve));
    chmodSync(path, 0o666);
    return proxy;
  }

  get isInUse(): boolean {
    return [...this.#sockets].some(({ destroyed }) => !destroyed);
  }

  /** Loses whatever comes from now on; both ends go on sending to it. */
  hold(): void {
    this.#isHolding = true;
  }

  /** As `hold`, once so many more bytes were passed on. Resolves then. */
  holdAfter(bytes: number): Promise<void> {
    return new Promise((begun) => {
      this.#holding = { atBytes: this.passedBytes + bytes, begun };
    });
  }

  /** Breaks the lines, and passes on again what comes on new ones. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
    this.#isHolding = false;
  }

  [Symbol.dispose](): void {
    this.cut();
    this.#server.close();
  }

  #pass(bytes: Buffer, to: Socket): void {
    if (this.#isHolding) return;
    this.passedBytes += bytes.length;
    for (let at = 0; at < bytes.length; at += this.pieceBytes) to.write(bytes.subarray(at, at + this.pieceBytes));
    if (!this.#holding || this.passedBytes < this.#holding.atBytes) return;
    this.hold();
    this.#holding.begun();
    this.#holding = undefined;
  }
}

/** Gives two processes a line, through a proxy. */
export async function joinByLine(one: Member, other: Member, folder: TemporaryFolder): Promise<LineProxy> {
  const [path, front] = [join(folder.path, "line.sock"), join(folder.path, "front.sock")];
  const server = createServer((socket) => one.hub.lines.add(other.peers.peer, socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const proxy = await LineProxy.listen(front, path);
  other.hub.lines.add(one.peers.peer, connect(front));
  await until("the line", () => one.hub.lines.has(other.peers.peer) && other.hub.lines.has(one.peers.peer));
  server.close();
  return proxy;
}
