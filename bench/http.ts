/**
 * The HTTP API as called by a busy client: connections are reused, nothing is retried. Does not use the client library, whose
 * overhead would be measured too: it sends an Idempotency-Key with calls that create something, which the server stores, and
 * processes every piece of a stream.
 */
import { Agent, type IncomingMessage, request } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly json?: object;
  readonly file?: { readonly source: Readable; readonly bytes: number };
}

export class HttpClient {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string, apiKey: string) {
    this.url = url;
    this.headers = { "x-api-key": apiKey };
  }

  /** Makes a call with a small answer, and parses it. @throws {Error} unless the status is 2xx */
  async json<T>(call: Call): Promise<T> {
    const response = await this.open(call);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as T;
  }

  /** Resolves when the headers of the answer have arrived; the body must be read. @throws {Error} unless the status is 2xx */
  async open(call: Call): Promise<IncomingMessage> {
    const response = await this.#send(call);
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    const text = (await response.setEncoding("utf8").toArray()).join("");
    throw new Error(`${call.method} ${call.path} answered ${statusCode}: ${text.slice(0, 500)}`);
  }

  close(): void {
    this.#agent.destroy();
  }

  #send({ method, path, json, file }: Call): Promise<IncomingMessage> {
    const body = json === undefined ? undefined : JSON.stringify(json);
    const entity: Record<string, string | number> =
      body !== undefined
        ? { "content-type": "application/json", "content-length": Buffer.byteLength(body) }
        : file
          ? { "content-type": "application/octet-stream", "content-length": file.bytes }
          : {};
    return new Promise((resolve, reject) => {
      const options = { method, agent: this.#agent, headers: { ...this.headers, ...entity } };
      const sent = request(this.url + path, options, resolve).once("error", reject);
      if (file) pipeline(file.source, sent).catch(reject);
      else sent.end(body);
    });
  }
}
