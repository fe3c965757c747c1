/** Calls of one client: address, key, time limits, retries. */
import { slowTimeoutMs, split } from "./call-options.ts";
import { APIConnectionError, APIConnectionTimeoutError, APIError, errorOfAnswer, NotFoundError, SandgateError } from "./errors.ts";
import type { Platform } from "./platform.ts";
import { isUncertain, rateWaitMs, retryPauseMs } from "./retry.ts";
import type { ByteStream, Transport, WireAnswer, WireRequest } from "./transport.ts";
import { type Limit, limit, pause } from "./waiting.ts";

/** What every call takes beside what it is about. */
export interface CallOptions {
  /** Ends the call; what it throws then is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that one try may take. */
  timeoutMs?: number | undefined;
  /** How often a call that can be repeated is sent again; other calls never are. */
  maxRetries?: number | undefined;
}

/** What calls that make something take. */
export interface MakeOptions extends CallOptions {
  /** The same key and body within a day make one thing, however often they are sent. Made up when absent. */
  idempotencyKey?: string | undefined;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly json?: object | undefined;
  /** Made anew for every try where it is a function; other streams can be sent once. */
  readonly bytes?: ByteStream | (() => ByteStream);
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether sending it twice does no harm. */
  readonly repeatable: boolean;
  readonly options: CallOptions;
  /** In milliseconds, where the caller does not say; undefined for the client's own, infinite for none. */
  readonly timeoutMs?: number;
}

export interface ConnectionSettings {
  readonly baseUrl: URL;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly onRateLimited: ((waitMs: number) => void) | undefined;
  readonly transport: Transport;
  readonly platform: Platform;
}

/** Error bodies beyond this are not the API's. */
const errorBytesMax = 64 * 1024;

export class Connection {
  readonly settings: ConnectionSettings;

  constructor(settings: ConnectionSettings) {
    this.settings = settings;
  }

  /** The whole answer, parsed. @throws {APIError} */
  json<T>(call: Call): Promise<T> {
    return this.#retrying(call, (limits) => this.#whole<T>(call, limits));
  }

  /**
   * A deletion. When the answer of a try was lost and the next one finds nothing, it has been carried out.
   *
   * @param done what is answered then
   */
  async delete<T>(call: Call, done: () => T): Promise<T> {
    let isMaybeDone = false;
    const once = async (limits: Limit): Promise<T> => {
      try {
        return await this.#whole<T>(call, limits);
      } catch (error) {
        limits.release();
        if (isMaybeDone && error instanceof NotFoundError) return done();
        isMaybeDone ||= isUncertain(error);
        throw error;
      }
    };
    return this.#retrying(call, once);
  }

  /** The answer's head; its body is still to be read, without a limit of time. @throws {APIError} also while reading the body */
  open(call: Call): Promise<WireAnswer> {
    return this.#retrying(call, async (limits) => {
      const answer = await this.#head(call, limits);
      limits.stopClock();
      return { ...answer, body: translated(answer, limits) };
    });
  }

  /** A call that makes one thing, however often it is sent. @param options with what is sent */
  make<T>(path: string, options: MakeOptions): Promise<T> {
    const [json, call] = split(options);
    const headers = { "idempotency-key": call.idempotencyKey ?? this.settings.platform.randomId() };
    return this.json({ method: "POST", path, json, headers, repeatable: true, options: call, timeoutMs: slowTimeoutMs });
  }

  /** @param scheme `ws:` for sessions, which takes the place of `http:` */
  url(path: string, query: Query = {}): URL {
    const url = new URL(this.settings.baseUrl.href.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
    return url;
  }

  /** The key, where there is one. */
  authentication(): Record<string, string> {
    const { apiKey } = this.settings;
    return apiKey === undefined ? {} : { "x-api-key": apiKey };
  }

  /**
   * Where the client is to be patient, waits as long as a server asks that has refused for its rate, and tries again.
   *
   * @param once a try; one that was refused so has done nothing
   */
  async whenAllowed<T>(once: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      try {
        return await once();
      } catch (error) {
        const { onRateLimited } = this.settings;
        const waitMs = onRateLimited && rateWaitMs(error);
        if (waitMs === undefined) throw error;
        onRateLimited?.(waitMs);
        await pause(waitMs, signal);
      }
    }
  }

  async #retrying<T>(call: Call, once: (limits: Limit) => Promise<T>): Promise<T> {
    const { signal, maxRetries = this.settings.maxRetries } = call.options;
    const isSentOnce = call.bytes !== undefined && typeof call.bytes !== "function";
    const attemptOnce = () => this.#attempt(call, once);
    for (let attempt = 0; ; attempt++) {
      try {
        return await (isSentOnce ? attemptOnce() : this.whenAllowed(attemptOnce, signal));
      } catch (error) {
        const waitMs = call.repeatable && attempt < maxRetries ? retryPauseMs(error, attempt) : undefined;
        if (waitMs === undefined) throw error;
        await pause(waitMs, signal);
      }
    }
  }

  async #attempt<T>(call: Call, once: (limits: Limit) => Promise<T>): Promise<T> {
    const { signal, timeoutMs = call.timeoutMs ?? this.settings.timeoutMs } = call.options;
    const limits = limit(signal, timeoutMs);
    try {
      return await once(limits);
    } catch (thrown) {
      limits.release();
      throw this.#translate(thrown, call, limits, timeoutMs);
    }
  }

  async #whole<T>(call: Call, limits: Limit): Promise<T> {
    const { body, status, headers } = await this.#head(call, limits);
    const text = await wholeText(body);
    limits.release();
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new APIError("the answer is not JSON: is this the address of a Sandgate gateway?", { status, headers }, cause);
    }
  }

  async #head(call: Call, limits: Limit): Promise<WireAnswer> {
    const answer = await this.settings.transport(this.#request(call, limits.signal));
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw errorOfAnswer(answer.status, answer.headers, await wholeText(answer.body, errorBytesMax).catch(() => ""));
  }

  #request({ method, path, query, json, bytes, headers }: Call, signal: AbortSignal): WireRequest {
    const type = bytes ? { "content-type": "application/octet-stream" } : json ? { "content-type": "application/json" } : {};
    return {
      method,
      url: this.url(path, query),
      headers: { accept: "application/json", ...this.authentication(), ...type, ...headers },
      body: (typeof bytes === "function" ? bytes() : bytes) ?? (json && JSON.stringify(json)),
      signal,
    };
  }

  #translate(thrown: unknown, { method, path, options }: Call, limits: Limit, timeoutMs: number): unknown {
    if (thrown instanceof SandgateError) return thrown;
    if (limits.isOver) return new APIConnectionTimeoutError(`${method} ${path}: no answer in ${timeoutMs} ms`, {}, thrown);
    if (options.signal?.aborted) return options.signal.reason;
    return new APIConnectionError(`no answer from ${this.settings.baseUrl.origin}: ${reasonOf(thrown)}`, {}, thrown);
  }
}

/** The body with errors of the client; the signal counts until its end. */
async function* translated({ body, headers }: WireAnswer, limits: Limit): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (error === limits.signal.reason) throw error;
    throw new APIConnectionError(`the answer broke off: ${reasonOf(error)}`, { headers, requestId: headers.get("x-request-id") ?? undefined }, error);
  } finally {
    limits.release();
  }
}

async function wholeText(body: ByteStream, bytesMax = Number.POSITIVE_INFINITY): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    bytes += piece.length;
    if (bytes > bytesMax) break;
  }
  return text + decoder.decode();
}

/** What the network says stands in the cause of what `fetch` throws; Node gives several reasons for a name with several addresses. */
function reasonOf(error: unknown): string {
  const [first] = error instanceof Error && "errors" in error ? (error.errors as unknown[]) : [];
  const told = first ?? (error instanceof Error ? (error.cause ?? error) : error);
  return told instanceof Error && told.message ? told.message : String(error);
}
