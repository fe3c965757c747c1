/** An HTTP proxy on 127.0.0.1 that tunnels to servers of the test under whatever names they are to have. */
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { testPort } from "./ports.ts";

export class TestProxy {
  /** `host:port` of every tunnel that was asked for. */
  readonly asked: string[] = [];
  readonly port: number;
  /** The ports on 127.0.0.1 that names lead to. */
  readonly #names = new Map<string, number>();
  readonly #server: Server;
  /** Tunnels, which the server counts but does not close. */
  readonly #tunnels = new Set<Duplex>();

  private constructor(port: number) {
    this.port = port;
    this.#server = createServer((_, response) => response.writeHead(502).end());
    this.#server.on("connect", ({ url = "" }, socket) => {
      this.asked.push(url);
      this.#tunnels.add(socket);
      socket.on("close", () => this.#tunnels.delete(socket));
      const to = this.#names.get(url);
      socket.on("error", () => undefined);
      if (to === undefined) return void socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
      const server = connect(to, "127.0.0.1", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
      server.on("error", () => socket.destroy());
      socket.on("close", () => server.destroy());
      server.pipe(socket).pipe(server);
    });
  }

  static async start(): Promise<TestProxy> {
    const proxy = new TestProxy(await testPort());
    await new Promise<void>((resolve) => proxy.#server.listen(proxy.port, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** @param name `host:port` */
  lead(name: string, port: number): void {
    this.#names.set(name, port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    for (const tunnel of this.#tunnels) tunnel.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
