/** A network between a client and a server, whose connections can be cut and which can be taken down for a while. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class TestNetwork implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isDown = false;
  /** Connections that were let through. */
  passed = 0;

  private constructor(target: URL) {
    this.#server = createServer((near) => {
      if (this.#isDown) return void near.destroy();
      this.passed++;
      const far = connect(Number(target.port), target.hostname);
      this.#join(near, far);
      this.#join(far, near);
    });
  }

  /** @param url of the server behind it */
  static async to(url: string): Promise<TestNetwork> {
    const network = new TestNetwork(new URL(url));
    await new Promise<void>((resolve) => network.#server.listen(0, "127.0.0.1", resolve));
    return network;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Every connection breaks; new ones are let through unless it is down. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Every connection breaks, and new ones are refused until `up`. */
  down(): void {
    this.#isDown = true;
    this.cut();
  }

  up(): void {
    this.#isDown = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.down();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on("error", () => {});
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    from.pipe(to);
  }
}
