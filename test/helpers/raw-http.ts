/** HTTP by hand over one TCP connection, for what a well-behaved client would never send. */
import { connect, type Socket } from "node:net";
import type { Answer } from "./api.ts";

/** Longer than the gateway itself waits for a silent client. */
const silenceMs = 25_000;

export class Connection {
  readonly #socket: Socket;
  /** What requests name as their `Host`. */
  readonly #host: string;
  #received = Buffer.alloc(0);
  receivedBytes = 0;
  #closed = false;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (chunk) => {
      this.receivedBytes += chunk.length;
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake?.();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#closed = true;
      this.#wake?.();
    });
  }

  static async open(url: string): Promise<Connection> {
    const { host, hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new Connection(socket, host);
  }

  /** Sends bytes as they are. */
  send(bytes: string | Uint8Array): this {
    this.#socket.write(bytes);
    return this;
  }

  /** A request with its header lines; Content-Length is added where a body is given. */
  request(method: string, path: string, headers: Record<string, string> = {}, body?: string | Uint8Array): this {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const lines = Object.entries({ host: this.#host, ...length, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.send(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
    return body === undefined ? this : this.send(body);
  }

  /** The next answer; its body by Content-Length, parsed where it is JSON. */
  async answer<T = Record<string, unknown>>({ hasBody = true } = {}): Promise<Answer<T>> {
    await this.#until(() => this.#received.includes("\r\n\r\n"));
    const end = this.#received.indexOf("\r\n\r\n");
    const [statusLine = "", ...lines] = this.#received.subarray(0, end).toString("latin1").split("\r\n");
    const headers = new Headers(lines.map((line): [string, string] => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
    const length = hasBody ? Number(headers.get("content-length") ?? 0) : 0;
    await this.#until(() => this.#received.length >= end + 4 + length);
    const text = this.#received.subarray(end + 4, end + 4 + length).toString("utf8");
    this.#received = this.#received.subarray(end + 4 + length);
    const isJson = headers.get("content-type")?.includes("json") && text;
    return { status: Number(statusLine.split(" ")[1]), headers, body: (isJson ? JSON.parse(text) : text) as T };
  }

  /** Resolves when the other side has closed the connection. */
  async closed(): Promise<void> {
    while (!this.#closed) await this.#news();
  }

  /** What has arrived and was not read as an answer. */
  get unread(): string {
    return this.#received.toString("latin1");
  }

  /** Stops reading, so that the other side cannot continue to send. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Breaks the connection off. */
  cut(): void {
    this.#socket.destroy();
  }

  [Symbol.dispose](): void {
    this.cut();
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.#closed) throw new Error(`the connection was closed; unread: ${this.unread.slice(0, 500)}`);
      await this.#news();
    }
  }

  #news(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing came in ${silenceMs} ms; unread: ${this.unread.slice(0, 500)}`)), silenceMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
