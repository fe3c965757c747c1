/** The calls of one client: address, key, timeouts, retries. */

import { Deadline } from "../abort.ts";
import { retry } from "../waiting.ts";
import { type CallOptions, type MakeOptions, slowTimeoutMs, split } from "./call-options.ts";
import { APIConnectionError, APIConnectionTimeoutError, APIError, errorOfAnswer, NotFoundError, SandgateError } from "./errors.ts";
import type { Platform } from "./platform.ts";
import { isUncertain, rateWaitMs, retryPauseMs } from "./retry.ts";
import { type ByteStream, reasonOf, type Transport, translated, type WireAnswer, type WireRequest, wholeText } from "./transport.ts";

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly json?: object | undefined;
  /** A function is called for every attempt; other streams can be sent only once. */
  readonly bytes?: ByteStream | (() => ByteStream);
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it is safe to send the call twice. */
  readonly repeatable: boolean;
  readonly options: CallOptions;
  /** Timeout in milliseconds if the caller gives none; undefined for the client's default, infinite for no timeout. */
  readonly timeoutMs?: number;
}

export interface ConnectionSettings {
  readonly baseUrl: URL;
  /** The gateway's address, as shown in messages. */
  readonly place: string;
  /** The Unix socket of a gateway on this machine. */
  readonly socketPath?: string | undefined;
  /** The headers that authenticate the caller. */
  readonly credentials: (method: string) => Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly onRateLimited: ((waitMs: number) => void) | undefined;
  readonly transport: Transport;
  readonly platform: Platform;
}

/** Error bodies longer than this are not from the API. */
const errorBytesMax = 64 * 1024;

/** A group of calls that share a connection. */
export abstract class Calls {
  protected readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }
}

export class Connection {
  readonly settings: ConnectionSettings;

  constructor(settings: ConnectionSettings) {
    this.settings = settings;
  }

  /** A call that only reads. @throws {APIError} */
  get<T>(path: string, options: CallOptions, query: Query = {}): Promise<T> {
    return this.json({ method: "GET", path, query, repeatable: true, options });
  }

  /** The whole answer, parsed. @throws {APIError} */
  json<T>(call: Call): Promise<T> {
    return this.#retrying(call, (deadline) => this.#whole<T>(call, deadline));
  }

  /**
   * A deletion. If the answer to one attempt was lost and a retry gets 404, the first attempt has succeeded.
   *
   * @param done makes the answer for that case
   */
  async delete<T>(call: Call, done: () => T): Promise<T> {
    let isMaybeDone = false;
    const once = async (deadline: Deadline): Promise<T> => {
      try {
        return await this.#whole<T>(call, deadline);
      } catch (error) {
        deadline.release();
        if (isMaybeDone && error instanceof NotFoundError) return done();
        isMaybeDone ||= isUncertain(error);
        throw error;
      }
    };
    return this.#retrying(call, once);
  }

  /** Resolves with the head of the answer; its body is read afterwards, without a timeout. @throws {APIError} also while reading the body */
  open(call: Call): Promise<WireAnswer> {
    return this.#retrying(call, async (deadline) => {
      const answer = await this.#head(call, deadline);
      deadline.stopClock();
      return { ...answer, body: translated(answer, deadline) };
    });
  }

  /** A call that creates one object, however often it is sent. @param options include the fields to send */
  make<T>(path: string, options: MakeOptions): Promise<T> {
    const [json, call] = split(options);
    const headers = { "idempotency-key": call.idempotencyKey ?? this.settings.platform.randomId() };
    return this.json({ method: "POST", path, json, headers, repeatable: true, options: call, timeoutMs: slowTimeoutMs });
  }

  url(path: string, query: Query = {}): URL {
    const url = new URL(this.settings.baseUrl.href.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
    return url;
  }

  /**
   * If the client has `onRateLimited`, waits as long as the server asks after a call refused by the rate limit, and tries again.
   *
   * @param once one attempt; a refused one has had no effect
   */
  async whenAllowed<T>(once: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { onRateLimited } = this.settings;
    if (!onRateLimited) return once();
    const pauseMs = (error: unknown): number | undefined => {
      const waitMs = rateWaitMs(error);
      if (waitMs !== undefined) onRateLimited(waitMs);
      return waitMs;
    };
    return retry(once, pauseMs, signal);
  }

  async #retrying<T>(call: Call, once: (deadline: Deadline) => Promise<T>): Promise<T> {
    const { signal, maxRetries = this.settings.maxRetries } = call.options;
    const isSentOnce = call.bytes !== undefined && typeof call.bytes !== "function";
    const attempt = () => this.#attempt(call, once);
    const allowed = () => (isSentOnce ? attempt() : this.whenAllowed(attempt, signal));
    return retry(allowed, (error, tries) => (call.repeatable && tries < maxRetries ? retryPauseMs(error, tries) : undefined), signal);
  }

  async #attempt<T>(call: Call, once: (deadline: Deadline) => Promise<T>): Promise<T> {
    const { signal, timeoutMs = call.timeoutMs ?? this.settings.timeoutMs } = call.options;
    const deadline = new Deadline(signal, timeoutMs);
    try {
      return await once(deadline);
    } catch (thrown) {
      deadline.release();
      throw this.#translate(thrown, call, deadline, timeoutMs);
    }
  }

  async #whole<T>(call: Call, deadline: Deadline): Promise<T> {
    const { body, status, headers } = await this.#head(call, deadline);
    const text = await wholeText(body);
    deadline.release();
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new APIError("the answer is not JSON: is this the address of a Sandgate gateway?", { status, headers }, cause);
    }
  }

  async #head(call: Call, deadline: Deadline): Promise<WireAnswer> {
    const answer = await this.settings.transport(this.#request(call, deadline.signal));
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw errorOfAnswer(answer.status, answer.headers, await wholeText(answer.body, errorBytesMax).catch(() => ""));
  }

  #request({ method, path, query, json, bytes, headers }: Call, signal: AbortSignal): WireRequest {
    const type = bytes ? { "content-type": "application/octet-stream" } : json ? { "content-type": "application/json" } : {};
    return {
      method,
      url: this.url(path, query),
      headers: { accept: "application/json", ...this.settings.credentials(method), ...type, ...headers },
      body: (typeof bytes === "function" ? bytes() : bytes) ?? (json && JSON.stringify(json)),
      signal,
    };
  }

  #translate(thrown: unknown, { method, path, options }: Call, deadline: Deadline, timeoutMs: number): unknown {
    if (thrown instanceof SandgateError) return thrown;
    if (deadline.isOver) return new APIConnectionTimeoutError(`${method} ${path}: no answer in ${timeoutMs} ms`, {}, thrown);
    if (options.signal?.aborted) return options.signal.reason;
    return new APIConnectionError(`no answer from ${this.settings.place}: ${reasonOf(thrown)}`, {}, thrown);
  }
}
