/** A network between a client and a server that can be cut. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Cuttable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  /** @param target the URL of the server behind it */
  static async open(target: string): Promise<Cuttable> {
    const { hostname, port } = new URL(target);
    const server = createServer((near) => cuttable.#join(near, connect(Number(port), hostname)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const cuttable = new Cuttable(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return cuttable;
  }

  /** All connections break, and new ones too, until it is healed. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  heal(): void {
    this.#isCut = false;
  }

  close(): Promise<void> {
    this.cut();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #join(near: Socket, far: Socket): void {
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
    if (this.#isCut) near.destroy();
  }
}
