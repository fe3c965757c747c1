/** A TCP proxy whose connections can be cut, as a bad network does it, and which can be out of reach for a while. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

export class CutProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isClosed = false;
  /** Connections that were let through. */
  passed = 0;

  private constructor(target: URL) {
    this.#server = createServer((client) => {
      if (this.#isClosed) return void client.destroy();
      this.passed++;
      const server = connect(Number(target.port), target.hostname);
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(from);
        from.pipe(to);
        from.on("error", () => {});
        from.once("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
      }
    });
  }

  static async to(url: string): Promise<CutProxy> {
    const proxy = new CutProxy(new URL(url));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Every connection breaks; new ones are let through, unless it is closed. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Whether new connections are refused. */
  refuse(isClosed: boolean): void {
    this.#isClosed = isClosed;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
