/** Lines between processes, with something between their ends that holds up and loses what is on them. */
import { randomBytes } from "node:crypto";
import { chmodSync } from "node:fs";
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { lineTokenBytes, lineTokenLetters } from "../../shared/bus/contract/lines.ts";
import { comeTo, receive } from "../../shared/stream/line/introduction.ts";
import { answering, type LineAddress } from "../../shared/stream/line/tls.ts";
import type { TemporaryFolder } from "./folder.ts";
import type { Member } from "./streams.ts";
import { until } from "./until.ts";

/** Passes connections to a socket on to another one. */
export class LineProxy implements Disposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Passes on so many bytes at a time. */
  pieceBytes = Number.POSITIVE_INFINITY;
  /** How many bytes it has passed on. */
  passedBytes = 0;
  /** Are told of all of them, and of those from the one who has connected. */
  onPass: (bytes: Buffer) => void = () => {};
  onSend: (bytes: Buffer) => void = () => {};
  #isHolding = false;
  #holding: { atBytes: number; begun: () => void } | undefined;

  private constructor(target: NetConnectOpts) {
    this.#server = createServer((socket) => {
      const other = connect(target);
      socket.on("data", (bytes) => this.onSend(bytes as Buffer));
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
    const proxy = new LineProxy({ path: target });
    await new Promise<void>((resolve) => proxy.#server.listen(path, resolve));
    chmodSync(path, 0o666);
    return proxy;
  }

  /** On a free port in front of another one. */
  static async onPort(target: LineAddress): Promise<LineProxy> {
    const proxy = new LineProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get address(): LineAddress {
    const { address, port } = this.#server.address() as AddressInfo;
    return { host: address, port };
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
    this.onPass(bytes);
    for (let at = 0; at < bytes.length; at += this.pieceBytes) to.write(bytes.subarray(at, at + this.pieceBytes));
    if (!this.#holding || this.passedBytes < this.#holding.atBytes) return;
    this.hold();
    this.#holding.begun();
    this.#holding = undefined;
  }
}

/** Gives two processes a line, through a proxy, by one of two ways. */
export type Join = (one: Member, other: Member, folder: TemporaryFolder) => Promise<LineProxy>;

const haveLine = (one: Member, other: Member): Promise<unknown> =>
  until("the line", () => one.hub.lines.has(other.peers.peer) && other.hub.lines.has(one.peers.peer));

export const joinBySocket: Join = async (one, other, folder) => {
  const [path, front] = [join(folder.path, "line.sock"), join(folder.path, "front.sock")];
  const server = createServer((socket) => one.hub.lines.add(other.peers.peer, socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const proxy = await LineProxy.listen(front, path);
  other.hub.lines.add(one.peers.peer, connect(front));
  await haveLine(one, other);
  server.close();
  return proxy;
};

export const joinByTls: Join = async (one, other) => {
  const token = randomBytes(lineTokenBytes).toString("hex");
  const server = createServer((socket) => {
    const secured = answering(socket, () => token);
    void receive(secured, lineTokenLetters, () => (admitted) => one.hub.lines.add(other.peers.peer, admitted));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy = await LineProxy.onPort({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  other.hub.lines.add(one.peers.peer, await comeTo(proxy.address, token));
  await haveLine(one, other);
  server.close();
  return proxy;
};
