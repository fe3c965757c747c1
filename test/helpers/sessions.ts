/** A client of live sessions that uses only the `ws` package, so that tests see what goes over the wire. */
import assert from "node:assert/strict";
import { once } from "node:events";
import WebSocket from "ws";
import type {
  AttachMessage,
  ClientMessage,
  ErrorMessage,
  ExitMessage,
  GapMessage,
  ServerMessage,
  StartedMessage,
  StartMessage,
} from "../../shared/schemas/sessions.ts";
import { decodeOutput, encodeInput, inputPayloadMax } from "../../shared/stream/session/frames.ts";
import { subprotocol } from "../../shared/stream/session/protocol.ts";
import type { Api } from "./api.ts";
import { until } from "./until.ts";

/** A connection that was refused: what the server answered instead. */
export class Refused extends Error {
  readonly status: number;
  readonly body: { error: { code: string; message: string } };
  constructor(status: number, body: string) {
    super(`${status} ${body}`);
    this.status = status;
    this.body = JSON.parse(body);
  }
}

export interface ConnectOptions {
  readonly headers?: Record<string, string>;
  readonly protocols?: string[];
  readonly query?: string;
}

export class SessionClient {
  readonly ws: WebSocket;
  readonly messages: ServerMessage[] = [];
  /** Output of each channel, as text of one byte a character. */
  readonly text = { 1: "", 2: "" };
  /** Where the next byte of output must begin. */
  next = 0;
  /** Pieces that did not begin where the last one ended. */
  readonly holes: string[] = [];
  pings = 0;
  isAcking = true;
  close: { code: number; reason: string } | undefined;
  /** Protocol errors that this end has found. */
  failure: string | undefined;
  #acknowledged = 0;
  readonly #onOutput: ((bytes: Uint8Array, channel: 1 | 2) => void) | undefined;

  constructor(ws: WebSocket, onOutput?: (bytes: Uint8Array, channel: 1 | 2) => void) {
    this.ws = ws;
    this.#onOutput = onOutput;
    ws.on("message", (data: Buffer, isBinary) => (isBinary ? this.#takeOutput(data) : this.#takeMessage(JSON.parse(data.toString()) as ServerMessage)));
    ws.on("close", (code, reason) => {
      this.close = { code, reason: reason.toString() };
    });
    ws.on("error", (error) => {
      this.failure = error.message;
    });
    ws.on("ping", () => this.pings++);
  }

  get started(): StartedMessage | undefined {
    return this.messages.find((message): message is StartedMessage => message.type === "started");
  }

  get exit(): ExitMessage | undefined {
    return this.messages.find((message): message is ExitMessage => message.type === "exit");
  }

  get error(): ErrorMessage | undefined {
    return this.messages.find((message): message is ErrorMessage => message.type === "error");
  }

  get gap(): GapMessage | undefined {
    return this.messages.find((message): message is GapMessage => message.type === "gap");
  }

  get id(): string {
    if (!this.started) throw new Error(`the session has not started: ${JSON.stringify(this.messages)}`);
    return this.started.session_id;
  }

  send(message: ClientMessage | Record<string, unknown>): void {
    this.ws.send(JSON.stringify(message));
  }

  type(text: string | Uint8Array): void {
    const bytes = typeof text === "string" ? Buffer.from(text) : text;
    for (let at = 0; at < bytes.length; at += inputPayloadMax) this.ws.send(encodeInput(bytes.subarray(at, at + inputPayloadMax)));
  }

  /** Resolves when the server has started or attached, or has refused to. */
  async ready(): Promise<this> {
    await until("started", () => this.started !== undefined || this.close !== undefined);
    if (!this.started) throw new Error(`not started: ${JSON.stringify([this.messages, this.close, this.failure])}`);
    return this;
  }

  /** Resolves when the output has a text in it, counted from `from` on. */
  async sees(text: string | RegExp, from = 0): Promise<void> {
    await until(`output with ${text}`, () => (typeof text === "string" ? this.text[1].includes(text, from) : text.test(this.text[1].slice(from))));
  }

  async closed(): Promise<{ code: number; reason: string }> {
    return until("the close", () => this.close);
  }

  /** Breaks the connection without a close frame. */
  cut(): void {
    this.ws.terminate();
  }

  #takeOutput(frame: Buffer): void {
    const output = decodeOutput(frame);
    if (!output) throw new Error("a frame that is no output");
    if (output.offset !== this.next) this.holes.push(`expected ${this.next}, got ${output.offset}`);
    this.next = output.offset + output.bytes.length;
    if (this.#onOutput) this.#onOutput(output.bytes, output.channel);
    else this.text[output.channel] += Buffer.from(output.bytes).toString("latin1");
    if (this.isAcking && this.next - this.#acknowledged >= 32 * 1024) this.acknowledge();
  }

  acknowledge(): void {
    this.#acknowledged = this.next;
    this.send({ type: "ack", offset: this.next });
  }

  #takeMessage(message: ServerMessage): void {
    this.messages.push(message);
    if (message.type === "started") this.next = message.offset;
    if (message.type === "started") this.#acknowledged = message.offset;
    if (message.type === "gap" && message.to > this.next) this.next = message.to;
  }
}

/** Opens a WebSocket. @throws {Refused} */
export async function connect(
  api: Api,
  sandboxId: string,
  { headers = { "x-api-key": api.apiKey }, protocols = [subprotocol], query = "" }: ConnectOptions = {},
  onOutput?: (bytes: Uint8Array, channel: 1 | 2) => void,
): Promise<SessionClient> {
  const ws = new WebSocket(`${api.url.replace("http", "ws")}/v1/sandboxes/${sandboxId}/session${query}`, protocols, { headers });
  const client = new SessionClient(ws, onOutput);
  const refused = Promise.withResolvers<never>();
  ws.once("unexpected-response", async (_request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    refused.reject(new Refused(response.statusCode ?? 0, Buffer.concat(chunks).toString()));
  });
  refused.promise.catch(() => {});
  await Promise.race([once(ws, "open"), refused.promise]);
  return client;
}

/** Starts a session and resolves when it runs. */
export async function start(
  api: Api,
  sandboxId: string,
  message: Partial<StartMessage> = {},
  onOutput?: (bytes: Uint8Array, channel: 1 | 2) => void,
): Promise<SessionClient> {
  const client = await connect(api, sandboxId, {}, onOutput);
  client.send({ type: "start", ...message });
  return client.ready();
}

/** Attaches to a session and resolves when that is done. */
export async function attach(
  api: Api,
  sandboxId: string,
  message: Omit<AttachMessage, "type">,
  onOutput?: (bytes: Uint8Array, channel: 1 | 2) => void,
): Promise<SessionClient> {
  const client = await connect(api, sandboxId, {}, onOutput);
  client.send({ type: "attach", ...message });
  return client.ready();
}

/** What a connection is refused with: status, code and message. Fails when it is let in. */
export async function refusal(connecting: Promise<unknown>): Promise<[number, string, string]> {
  const error = await connecting.then(
    () => assert.fail("the connection was let in"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Refused, String(error));
  return [error.status, error.body.error.code, error.body.error.message];
}
