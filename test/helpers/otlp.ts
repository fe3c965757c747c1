/** A receiver of OpenTelemetry traces: OTLP over HTTP with protobuf, as collectors have it. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { testPort } from "./ports.ts";
import { type Fields, hexOf, messagesOf, numberOf, readMessage, textOf } from "./protobuf.ts";

type Value = string | number | boolean;

export interface ReceivedSpan {
  readonly name: string;
  /** `internal`, `server`, `client`. */
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentId: string;
  readonly state: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly isError: boolean;
  /** Of the service. */
  readonly resource: Readonly<Record<string, Value>>;
}

export class OtlpReceiver {
  readonly port: number;
  readonly spans: ReceivedSpan[] = [];
  /** Everything that came, as it came. */
  readonly bodies: Buffer[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  /** How many of the next calls it refuses. */
  refusals = 0;
  #server: Server | undefined;

  private constructor(port: number) {
    this.port = port;
  }

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver(await testPort());
    await receiver.open();
    return receiver;
  }

  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async open(): Promise<void> {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      this.headers.push(request.headers);
      if (request.method !== "POST" || request.url !== "/v1/traces") return void response.writeHead(404).end();
      const isRefused = this.refusals > 0;
      if (isRefused) this.refusals--;
      else this.#take(Buffer.concat(chunks));
      response.writeHead(isRefused ? 400 : 200, { "content-type": "application/x-protobuf" }).end();
    });
    await new Promise<void>((resolve) => this.#server?.listen(this.port, "127.0.0.1", resolve));
  }

  async close(): Promise<void> {
    const closed = new Promise<unknown>((resolve) => (this.#server ? this.#server.close(resolve) : resolve(undefined)));
    this.#server?.closeAllConnections();
    this.#server = undefined;
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #take(body: Buffer): void {
    this.bodies.push(body);
    for (const ofResource of messagesOf(readMessage(body), 1)) {
      const resource = attributesOf(messagesOf(ofResource, 1)[0] as Fields, 1);
      for (const ofScope of messagesOf(ofResource, 2)) for (const span of messagesOf(ofScope, 2)) this.spans.push(spanOf(span, resource));
    }
  }
}

const kinds = ["", "internal", "server", "client", "producer", "consumer"];

function spanOf(span: Fields, resource: ReceivedSpan["resource"]): ReceivedSpan {
  const [status] = messagesOf(span, 15);
  return {
    name: textOf(span, 5),
    kind: kinds[Number(numberOf(span, 6))] ?? "",
    traceId: hexOf(span, 1),
    spanId: hexOf(span, 2),
    parentId: hexOf(span, 4),
    state: textOf(span, 3),
    startNs: numberOf(span, 7),
    endNs: numberOf(span, 8),
    attributes: attributesOf(span, 9),
    isError: status !== undefined && numberOf(status, 3) === 2n,
    resource,
  };
}

const attributesOf = (fields: Fields, field: number): Record<string, Value> =>
  Object.fromEntries(messagesOf(fields, field).map((pair) => [textOf(pair, 1), plainValue(messagesOf(pair, 2)[0] as Fields)]));

/** Of the kinds that are used: text, boolean and whole number. */
function plainValue(value: Fields): Value {
  if (value.has(1)) return textOf(value, 1);
  return value.has(2) ? numberOf(value, 2) === 1n : Number(BigInt.asIntN(64, numberOf(value, 3)));
}
