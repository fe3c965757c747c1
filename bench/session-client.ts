/** A fast client of live sessions: it waits only for what arrives on the socket. */
import { once } from "node:events";
import WebSocket from "ws";
import type { ServerMessage, StartMessage } from "../shared/schemas/sessions.ts";
import { decodeOutput, encodeInput, outputHeaderBytes } from "../shared/stream/session/frames.ts";
import { subprotocol, windowBytes } from "../shared/stream/session/protocol.ts";

const ackBytes = windowBytes / 4;

/** A WebSocket that sends something and waits for the echo. */
export interface Echo {
  /** Milliseconds from a keystroke to its echo. */
  keystroke(): Promise<number>;
  close(): void;
}

const key = encodeInput(Buffer.from("k"));

/** Milliseconds until a keystroke comes back over an open WebSocket. */
export async function roundTrip(socket: WebSocket): Promise<number> {
  const begun = performance.now();
  const back = once(socket, "message");
  socket.send(key);
  await back;
  return performance.now() - begun;
}

export async function openEcho(port: number): Promise<Echo> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
  await once(socket, "open");
  return { keystroke: () => roundTrip(socket), close: () => socket.terminate() };
}

export class BenchSession implements Echo {
  readonly #socket: WebSocket;
  readonly #ended = Promise.withResolvers<number>();
  readonly #started = Promise.withResolvers<void>();
  readonly #written = Promise.withResolvers<void>();
  #acknowledged = 0;
  bytes = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary) => (isBinary ? this.#takeOutput(data) : this.#take(JSON.parse(data.toString()) as ServerMessage)));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", (code) => this.#fail(new Error(`the session was closed with ${code}`)));
    this.#ended.promise.catch(() => {});
    for (const { promise } of [this.#started, this.#written]) promise.catch(() => {});
  }

  /** Resolves when the command is running. */
  static async start({ url, apiKey }: { url: string; apiKey: string }, sandboxId: string, message: Omit<StartMessage, "type">): Promise<BenchSession> {
    const address = `${url.replace("http", "ws")}/v1/sandboxes/${sandboxId}/session`;
    const session = new BenchSession(new WebSocket(address, [subprotocol], { headers: { "x-api-key": apiKey }, perMessageDeflate: false }));
    session.#socket.once("open", () => session.#socket.send(JSON.stringify({ type: "start", ...message })));
    await session.#started.promise;
    return session;
  }

  /** Resolves with the exit code. */
  get ended(): Promise<number> {
    return this.#ended.promise;
  }

  /** Resolves when the command has written some output. */
  get written(): Promise<void> {
    return this.#written.promise;
  }

  keystroke(): Promise<number> {
    return roundTrip(this.#socket);
  }

  kill(): void {
    this.#socket.send(JSON.stringify({ type: "kill" }));
  }

  close(): void {
    this.#socket.terminate();
  }

  #takeOutput(frame: Buffer): void {
    this.bytes += frame.length - outputHeaderBytes;
    this.#written.resolve();
    if (this.bytes - this.#acknowledged < ackBytes) return;
    this.#acknowledged = this.bytes;
    const output = decodeOutput(frame);
    if (output) this.#socket.send(JSON.stringify({ type: "ack", offset: output.offset + output.bytes.length }));
  }

  #take(message: ServerMessage): void {
    if (message.type === "started") this.#started.resolve();
    else if (message.type === "exit") this.#ended.resolve(message.exit_code);
    else if (message.type === "error") this.#fail(new Error(`${message.code}: ${message.message}`));
  }

  #fail(error: Error): void {
    this.#started.reject(error);
    this.#written.reject(error);
    this.#ended.reject(error);
  }
}
