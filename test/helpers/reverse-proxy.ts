/** A server in front of a gateway that passes everything on, except what a test has it refuse. */
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class ReverseProxy {
  /** Whether a request is answered with 503 instead of being passed on. */
  refuses: (request: IncomingMessage) => boolean = () => false;
  readonly #server: Server;

  private constructor(target: string) {
    this.#server = createServer((asked, answer) => {
      if (this.refuses(asked)) {
        answer.writeHead(503, { "content-type": "application/json" });
        return void answer.end('{"error":{"code":"unavailable","message":"refused by the test"}}');
      }
      const { method, url = "", headers } = asked;
      const passed = request(target + url, { method, headers }, (got) => {
        answer.writeHead(got.statusCode ?? 502, got.headers);
        got.pipe(answer);
      });
      passed.on("error", () => answer.destroy());
      asked.pipe(passed);
    });
  }

  static async start(target: string): Promise<ReverseProxy> {
    const proxy = new ReverseProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
