/** The client: the gateway's address, the caller's key, and the available calls. */
import { AccountCalls } from "./account.ts";
import { Admin } from "./admin.ts";
import { Connection } from "./connection.ts";
import { SandgateError } from "./errors.ts";
import type { Platform } from "./platform.ts";
import { SandboxHandle } from "./sandbox.ts";
import { Sandboxes } from "./sandboxes.ts";
import { Snapshots } from "./snapshots.ts";
import { fetchTransport } from "./transport-fetch.ts";

export interface ClientOptions {
  /** Defaults to `SANDGATE_API_KEY`. */
  apiKey?: string | undefined;
  /** Defaults to `SANDGATE_URL`, else to `http://127.0.0.1:8080`. */
  baseUrl?: string | undefined;
  /** The Unix socket of a gateway on this machine, used instead of the network. Not in browsers. */
  socketPath?: string | undefined;
  /** Timeout of each attempt in milliseconds, 60,000 by default. Calls known to be slow have longer ones. */
  timeoutMs?: number | undefined;
  /** How often calls that are safe to repeat are retried, 2 by default. */
  maxRetries?: number | undefined;
  /**
   * If given, calls refused by the rate limit (429), which have had no effect, wait as long as the server asks and are sent
   * again, however often. The exception are uploads of a stream that can be read only once. Called before every wait.
   */
  onRateLimited?: ((waitMs: number) => void) | undefined;
  /** Used instead of the client's own HTTP implementation. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Allows an API key in a browser. Everyone who sees the key has all rights of its account, so this is refused by default. */
  dangerouslyAllowBrowser?: boolean | undefined;
}

export const urlDefault = "http://127.0.0.1:8080";
const timeoutDefaultMs = 60_000;
const retriesDefault = 2;

export class SandgateClient {
  readonly sandboxes: Sandboxes;
  readonly snapshots: Snapshots;
  readonly account: AccountCalls;
  /** For operators of the installation. */
  readonly admin: Admin;
  readonly #connection: Connection;

  /** @throws {SandgateError} if there is no key, or the address is invalid */
  constructor(platform: Platform, options: ClientOptions) {
    const { baseUrl, socketPath, timeoutMs, maxRetries, onRateLimited, fetch } = options;
    if (platform.isBrowser && !options.dangerouslyAllowBrowser) {
      throw new SandgateError("an API key must not get into a browser: use session() with a token, or set dangerouslyAllowBrowser");
    }
    const credentials = { "x-api-key": keyOf(options) };
    const url = gatewayUrl(socketPath === undefined ? (baseUrl ?? clientEnvironment().url ?? urlDefault) : "http://localhost");
    const connection = new Connection({
      baseUrl: url,
      place: socketPath ?? url.origin,
      socketPath,
      credentials: () => credentials,
      timeoutMs: timeoutMs ?? timeoutDefaultMs,
      maxRetries: maxRetries ?? retriesDefault,
      onRateLimited,
      transport: fetch ? fetchTransport(fetch) : platform.transport(socketPath),
      platform,
    });
    this.#connection = connection;
    this.sandboxes = new Sandboxes(connection);
    this.snapshots = new Snapshots(connection);
    this.account = new AccountCalls(connection);
    this.admin = new Admin(connection);
  }

  /** The address of the gateway. */
  get baseUrl(): string {
    return this.#connection.settings.baseUrl.href;
  }

  /** A handle for a sandbox whose id is known. Makes no call. */
  sandbox(id: string): SandboxHandle {
    return new SandboxHandle(this.#connection, id);
  }
}

function keyOf({ apiKey = clientEnvironment().apiKey }: ClientOptions): string {
  if (!apiKey) throw new SandgateError("there is no API key: give apiKey or set SANDGATE_API_KEY");
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new SandgateError("the API key has characters that none can have");
  return apiKey;
}

/** @throws {SandgateError} */
export function gatewayUrl(text: string): URL {
  const url = parsed(text);
  if (!url || !/^https?:$/.test(url.protocol)) throw new SandgateError(`${text} is not the address of a gateway, such as http://127.0.0.1:8080`);
  return url;
}

function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** The only two environment variables that the client reads. Browsers have neither. */
export function clientEnvironment(): { url: string | undefined; apiKey: string | undefined } {
  const { SANDGATE_URL: url, SANDGATE_API_KEY: apiKey } = globalThis.process?.env ?? {};
  return { url: url?.trim() || undefined, apiKey: apiKey?.trim() || undefined };
}
