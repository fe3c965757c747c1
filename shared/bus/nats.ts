/** The connection to NATS. */
import { createInbox, type Msg, type NatsConnection, type RequestOptions } from "@nats-io/transport-node";
import { SandgateError, type WireError } from "../errors.ts";
import { inBackground } from "../util/background.ts";
import type { Logger } from "../util/log.ts";
import { currentTrace, inTrace, type TraceContext } from "../util/trace-context.ts";
import { pause } from "../waiting.ts";
import { type BusAccess, hostsOf, openConnection } from "./connect.ts";
import { busLost, inTime, unanswered } from "./failures.ts";
import { decodeJson, encodeJson } from "./messages.ts";
import { isToGateway, subjects } from "./subjects.ts";
import { traced, traceOf } from "./trace-headers.ts";

type Reply = { ok: true; data: unknown } | { ok: false; error: WireError };
type Listener = () => void;

/** How long NATS keeps a question whose answer is not waited for any more, beyond twice its time. */
const keptMs = 10_000;
/** How long a first connection takes before it is worth a line in the log, and then another one. */
const patienceMs = 10_000;
/** How long a subscription that has ended is left alone. */
const resubscribeMs = 1_000;
/** What the headers of a message, which count for its size, may take: those of JetStream and of a trace are shorter. */
const headersBytes = 1_024;

const inboxes = subjects.inbox("");

/**
 * Whether a message comes out of a stream. The storage sends what is in it to any subject that somebody names, also to one on which
 * that one may say nothing: nobody's word is in it.
 */
const isStored = ({ headers, reply }: Msg): boolean => headers?.has("Nats-Stream") === true || reply?.startsWith("$JS.") === true;

export class Bus {
  readonly connection: NatsConnection;
  /** See `BusAccess`; empty for who may ask the storage anything. */
  readonly storePrefix: string;
  readonly #gatewayReplies: string | undefined;
  readonly #log: Logger;
  readonly #lost = new Set<Listener>();
  readonly #restored = new Set<Listener>();
  #connected = true;
  #hasStorage = true;
  /** What was told last. */
  #isUsable = true;

  private constructor(connection: NatsConnection, log: Logger, { storePrefix = "", gatewayReplies }: BusAccess) {
    this.connection = connection;
    this.storePrefix = storePrefix;
    this.#gatewayReplies = gatewayReplies;
    this.#log = log;
    inBackground(log, "the state of the message bus is not watched any more", () => this.#watch());
  }

  /**
   * Connects and keeps reconnecting for ever.
   *
   * @param url `nats://[user:password@]host:port`, or several separated by commas.
   */
  static async connect(url: string, name: string, log: Logger, access: BusAccess = {}): Promise<Bus> {
    const servers = hostsOf(url);
    const waiting = setInterval(() => log.warn({ servers }, "no NATS server answers; still trying"), patienceMs);
    try {
      return new Bus(await openConnection(url, name, access), log, access);
    } finally {
      clearInterval(waiting);
    }
  }

  /** Under which name this process writes to a subject of the storage. */
  storeSubject(subject: string): string {
    return this.storePrefix ? `${this.storePrefix}.${subject}` : subject;
  }

  get connected(): boolean {
    return this.#isUsable && !this.connection.isClosed();
  }

  /** Says whether anything can be stored: without that, the connection counts as lost. See `pulse.ts`. */
  storageIsThere(isThere: boolean): void {
    this.#hasStorage = isThere;
    this.#tellChange();
  }

  /** Calls back when the connection breaks: what was published since may never arrive. Returns an unsubscriber. */
  onLost(listener: Listener): () => void {
    this.#lost.add(listener);
    return () => this.#lost.delete(listener);
  }

  /** Calls back when the connection is there again. Returns an unsubscriber. */
  onRestored(listener: Listener): () => void {
    this.#restored.add(listener);
    return () => this.#restored.delete(listener);
  }

  /**
   * Sends a message for which no answer comes, as part of a trace or of none. What is said while the connection is being closed, nobody hears.
   *
   * @throws {SandgateError} `payload_too_large`.
   */
  publish(subject: string, payload: Uint8Array, trace?: TraceContext): void {
    this.refuseTooLarge("the message", payload);
    try {
      this.connection.publish(subject, payload, traced(trace));
    } catch (error) {
      if (!this.#isClosing()) throw error;
    }
  }

  /** Tells whoever listens, without a promise that anybody hears it. Never throws, so that timers and listeners may use it. */
  tell(subject: string, body: unknown): void {
    if (!this.connected) return;
    inBackground(this.#log, "a message could not be sent", () => this.publish(subject, encodeJson(body), currentTrace()));
  }

  /** @throws {SandgateError} `payload_too_large` for what the bus takes in no message. */
  refuseTooLarge(what: string, payload: Uint8Array): void {
    const bytesMax = (this.connection.info?.max_payload ?? Number.POSITIVE_INFINITY) - headersBytes;
    if (payload.length > bytesMax) throw new SandgateError("payload_too_large", `${what} would have ${payload.length} bytes, ${bytesMax} are possible`);
  }

  /**
   * Hands every message on. What is thrown meanwhile is logged: the client would never read anything again after it. A subscription
   * that the server ends, which it may do when permissions change, begins again.
   */
  subscribe(subject: string, take: (message: Msg) => unknown): void {
    const subscription = this.connection.subscribe(subject, {
      callback: (error, message) => {
        // An error ends the subscription.
        if (!error && !isStored(message)) inBackground(this.#log, "a message could not be taken", () => take(message));
      },
    });
    inBackground(this.#log, "a subscription did not begin again", async () => {
      const error = await subscription.closed;
      if (this.#isClosing()) return;
      this.#log.error({ err: error, subject }, "a subscription ended; it begins again");
      await pause(resubscribeMs);
      if (!this.#isClosing()) this.subscribe(subject, take);
    });
  }

  #isClosing(): boolean {
    return this.connection.isDraining() || this.connection.isClosed();
  }

  /**
   * Request and reply, sent once and never repeated.
   *
   * @throws {SandgateError} the receiver's own error, or `unavailable` when nobody answers within `timeoutMs` (twice that, where
   *   this process was stopped or starved meanwhile, because the answer may lie there unread).
   */
  async call(subject: string, body: unknown, timeoutMs: number): Promise<unknown> {
    const payload = encodeJson(body);
    this.refuseTooLarge("the request", payload);
    const timeout = 2 * timeoutMs + keptMs;
    const options = { timeout, ...traced(currentTrace()), ...this.#replyTo(subject) };
    const request = (): Promise<Msg> => this.connection.request(subject, payload, options).catch((error) => Promise.reject(unanswered(error)));
    const message = await this.whileConnected(() => inTime(request(), timeoutMs));
    if (isStored(message)) throw busLost();
    const reply = decodeJson(message.data) as Reply;
    if (!reply.ok) throw SandgateError.fromWire(reply.error);
    return reply.data;
  }

  /** Where the reply is to arrive, if not in the inbox. */
  #replyTo(subject: string): Pick<RequestOptions, "noMux" | "reply"> {
    return this.#gatewayReplies && isToGateway(subject) ? { noMux: true, reply: createInbox(this.#gatewayReplies) } : {};
  }

  /**
   * Does something on the bus that ends at once when the connection breaks, instead of waiting for its own timeout.
   *
   * @throws {SandgateError} `unavailable`; what went wrong on the bus is its cause.
   */
  async whileConnected<T>(action: () => Promise<T>): Promise<T> {
    if (!this.connected) throw busLost();
    const lost = Promise.withResolvers<never>();
    const forget = this.onLost(() => lost.reject(busLost()));
    try {
      return await Promise.race([action(), lost.promise]);
    } catch (error) {
      throw error instanceof SandgateError ? error : busLost(error);
    } finally {
      forget();
    }
  }

  /** Answers calls on a subject; whatever the handler throws goes back as an error of the closed set. */
  serve(subject: string, handler: (body: unknown, subject: string) => Promise<unknown>): void {
    this.subscribe(subject, async (message) => {
      const reply = await inTrace(traceOf(message), () => this.#answerOf(message, handler));
      // Who asks names the subject of the answer: it must not be one on which this part's word counts more than its own.
      if (message.reply?.startsWith(inboxes)) this.publish(message.reply, reply);
    });
  }

  /** The handler's answer, or its error; an answer that is too large is an error as well. */
  async #answerOf(message: Msg, handler: (body: unknown, subject: string) => Promise<unknown>): Promise<Uint8Array> {
    try {
      const data = (await handler(decodeJson(message.data), message.subject)) ?? {};
      const reply = encodeJson({ ok: true, data } satisfies Reply);
      this.refuseTooLarge("the answer", reply);
      return reply;
    } catch (thrown) {
      const error = SandgateError.from(thrown);
      if (error.code === "internal_error") this.#log.error({ err: thrown, subject: message.subject }, "a call failed");
      return encodeJson({ ok: false, error: error.toWire() } satisfies Reply);
    }
  }

  /** What was said before still goes out, unless the connection breaks meanwhile. */
  async close(): Promise<void> {
    if (this.connection.isClosed()) return;
    if (this.#connected) await this.connection.drain().catch((err) => this.#log.debug({ err }, "the connection broke while it was being closed"));
    await this.connection.close();
  }

  async #watch(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type === "disconnect") this.#setConnected(false);
      else if (status.type === "reconnect") this.#setConnected(true);
      else if (status.type === "error") this.#log.warn({ err: status.error }, "the message bus reported an error");
    }
  }

  #setConnected(connected: boolean): void {
    this.#connected = connected;
    this.#tellChange();
  }

  #tellChange(): void {
    const isUsable = this.#connected && this.#hasStorage;
    if (isUsable === this.#isUsable) return;
    this.#isUsable = isUsable;
    this.#log.warn(isUsable ? "the message bus is back" : this.#connected ? "the message bus stores nothing" : "the connection to the message bus was lost");
    for (const listener of [...(isUsable ? this.#restored : this.#lost)]) inBackground(this.#log, "the news of the message bus were not taken", listener);
  }
}
