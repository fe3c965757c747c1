/** The client: where the gateway is, whose key, and what can be done there. */
import { AccountCalls } from "./account.ts";
import { Admin } from "./admin.ts";
import { Connection } from "./connection.ts";
import { clientEnvironment } from "./environment.ts";
import { SandgateError } from "./errors.ts";
import type { Platform } from "./platform.ts";
import { SandboxHandle } from "./sandbox.ts";
import { Sandboxes } from "./sandboxes.ts";
import { Snapshots } from "./snapshots.ts";
import { fetchTransport } from "./transport-fetch.ts";

export interface ClientOptions {
  /** `SANDGATE_API_KEY` when absent. */
  apiKey?: string | undefined;
  /** `SANDGATE_URL` when absent, else `http://127.0.0.1:8080`. */
  baseUrl?: string | undefined;
  /** The Unix socket of a gateway on this machine, which is then called there. Not in browsers. */
  socketPath?: string | undefined;
  /** Milliseconds that one try of a call may take, 60,000 when absent. Calls that are known to be slow have bounds of their own. */
  timeoutMs?: number | undefined;
  /** How often calls that can be repeated are sent again, 2 when absent. */
  maxRetries?: number | undefined;
  /**
   * With this, calls that the server refuses for its rate (429), and has therefore not begun, wait as long as it asks and
   * are sent again, however often; only uploads of a stream that can be read once are not. Told of every wait.
   */
  onRateLimited?: ((waitMs: number) => void) | undefined;
  /** In place of the client's own HTTP. */
  fetch?: typeof globalThis.fetch | undefined;
  /** An API key gives all rights of its account to everybody who sees it, so browsers get none by accident. */
  dangerouslyAllowBrowser?: boolean | undefined;
}

const urlDefault = "http://127.0.0.1:8080";
const timeoutDefaultMs = 60_000;
const retriesDefault = 2;

export class SandgateClient {
  readonly sandboxes: Sandboxes;
  readonly snapshots: Snapshots;
  readonly account: AccountCalls;
  /** For operators of the installation. */
  readonly admin: Admin;
  readonly #connection: Connection;

  /** @throws {SandgateError} when there is no key, or the address is none */
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

  /** A sandbox of which the id is known, without a call. */
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
