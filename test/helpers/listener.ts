/** A listener that nobody may connect to, and that records every connection. */
import { createServer, type Server } from "node:net";
import { testPort } from "./ports.ts";

export class Listener {
  readonly port: number;
  connections = 0;
  readonly #server: Server;

  private constructor(port: number) {
    this.port = port;
    this.#server = createServer((socket) => {
      this.connections++;
      socket.on("error", () => undefined);
      socket.destroy();
    });
  }

  /** On all addresses of this host. */
  static async start(): Promise<Listener> {
    const listener = new Listener(await testPort());
    await new Promise<void>((resolve) => listener.#server.listen(listener.port, "0.0.0.0", resolve));
    return listener;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
