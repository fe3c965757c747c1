/** A server that misbehaves by plan: each request is answered by the next step. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { reasonsOf } from "../../shared/errors.ts";

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Step = (response: ServerResponse, request: IncomingMessage) => void;

export class BadServer {
  /** Every request that came, in order. */
  readonly heard: Heard[] = [];
  readonly #server: Server;
  #steps: Step[] = [];

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<BadServer> {
    const made = new BadServer();
    await new Promise<void>((resolve) => made.#server.listen(0, "127.0.0.1", resolve));
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sets the steps for the next requests and forgets earlier requests. */
  plan(...steps: Step[]): void {
    this.#steps = steps;
    this.heard.length = 0;
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await buffer(request)).toString();
    this.heard.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers, body });
    const step = this.#steps.shift() ?? json(500, { error: { code: "internal_error", message: "no more was planned" } });
    step(response, request);
  }
}

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Step =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_test", ...headers });
    response.end(JSON.stringify(body));
  };

const reasons: Readonly<Record<string, readonly string[]>> = reasonsOf;
export const failure = (status: number, code: string, headers: Record<string, string> = {}): Step =>
  json(status, { error: { code, ...(reasons[code] ? { reason: reasons[code][0] } : {}), message: `${code}!` } }, headers);

/** Closes the connection without an answer. */
export const cut: Step = (response) => void response.socket?.destroy();

/** Sends the beginning of a body, then closes the connection. */
export const cutAfter =
  (text: string, headers: Record<string, string> = {}): Step =>
  (response) => {
    response.writeHead(200, headers);
    response.write(text, () => response.socket?.destroy());
  };

/** Sends the beginning of a body, and never the rest. */
export const stall =
  (text: string): Step =>
  (response) => {
    response.writeHead(200);
    response.write(text);
  };

/** Never answers. */
export const silence: Step = () => {};
