/** The HTTP listener: turns every request into an exchange and hands it to its route. */
import { App, SSLApp, type TemplatedApp, type us_listen_socket, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/util/log.ts";
import { inTrace } from "../../shared/util/trace-context.ts";
import type { CertificateFiles } from "./certificate.ts";
import { type Endpoint, Exchange, type Headers, type Listener } from "./exchange.ts";
import type { Hosts } from "./hosts.ts";
import { boundSocketBuffers } from "./socket-buffers.ts";
import { socketBehavior, type UserData } from "./sockets.ts";

interface ServerOptions<R extends Endpoint> {
  readonly routes: readonly R[];
  readonly corsOrigins: readonly string[];
  readonly hosts: Hosts;
  /** For HTTPS; without it the gateway speaks HTTP. */
  readonly certificate?: CertificateFiles | undefined;
  /** Path of the operator's Unix socket, which serves the same routes. */
  readonly operatorSocket: string;
  readonly log: Logger;
  /** Answers an exchange by its route. Never throws. */
  readonly handle: (exchange: Exchange, route: R) => void;
  /** Answers an exchange with an unknown path. */
  readonly notFound: (exchange: Exchange) => void;
  /** Called at the start of every exchange. */
  readonly begun: (exchange: Exchange) => void;
  /** Called at the end of every exchange. */
  readonly observe: (exchange: Exchange) => void;
}

export interface Server {
  readonly port: number;
  /** From now on, connections are closed after their next answer that has not begun yet, so that clients open others elsewhere. */
  closeAfterAnswers(): void;
  /** Has new connections get the certificate that is in the files now. @throws {Error} if that cannot be used */
  renew(): Promise<void>;
  /** Accepts no new connections; open exchanges continue. */
  stopListening(): void;
  /** How many connections are open without an exchange: a request may be on its way on each. */
  readonly idle: number;
  /** Closes all connections. */
  close(): void;
}

/** The status of an exchange that has become a WebSocket. */
const upgraded = 101;
const operatorSocketFailed = "cannot listen on the operator's Unix socket (is its path longer than 107 bytes?); sandgate-admin needs SANDGATE_URL";

/** Listens on host and port, and on the operator's Unix socket. @throws {Error} when it cannot listen on the address. */
export async function listen<R extends Endpoint>(host: string, port: number, options: ServerOptions<R>): Promise<Server> {
  const seen: Seen = { idle: 0, isClosing: false };
  const front = await Front.open(host, port, options, seen);
  const fronts = [front];
  // Replaces the socket file of a gateway that was killed.
  const operators = options.certificate ? appFor(options, seen) : front.app;
  let local: us_listen_socket | undefined;
  operators.listen_unix((socket: us_listen_socket | false) => {
    if (socket) local = socket;
    else options.log.warn({ event: "operator_socket_failed", path: options.operatorSocket }, operatorSocketFailed);
  }, options.operatorSocket);
  return {
    port: front.port,
    get idle() {
      return seen.idle;
    },
    closeAfterAnswers: () => {
      seen.isClosing = true;
    },
    renew: async () => {
      const former = fronts.at(-1);
      fronts.push(await Front.open(host, front.port, options, seen));
      former?.stopListening();
    },
    stopListening: () => {
      for (const each of fronts) each.stopListening();
      if (local) us_listen_socket_close(local);
      local = undefined;
    },
    close: () => {
      for (const { app } of fronts) app.close();
      if (operators !== front.app) operators.close();
    },
  };
}

/** What all listeners of a gateway have in common. */
interface Seen {
  idle: number;
  isClosing: boolean;
}

/** What listens on the gateway's port: with a certificate, one for each that was ever used, of which the last accepts connections. */
class Front {
  readonly app: TemplatedApp;
  readonly port: number;
  #socket: us_listen_socket | undefined;

  private constructor(app: TemplatedApp, socket: us_listen_socket) {
    this.app = app;
    this.#socket = socket;
    this.port = us_socket_local_port(socket);
  }

  static open<R extends Endpoint>(host: string, port: number, options: ServerOptions<R>, seen: Seen): Promise<Front> {
    const { promise, resolve, reject } = Promise.withResolvers<Front>();
    const app = appFor(options, seen, options.certificate);
    app.listen(host, port, (socket: us_listen_socket | false) => {
      if (!socket) return reject(new Error(`cannot listen on ${host}:${port}`));
      const front = new Front(app, socket);
      boundSocketBuffers(front.port, options.log);
      resolve(front);
    });
    return promise;
  }

  stopListening(): void {
    if (this.#socket) us_listen_socket_close(this.#socket);
    this.#socket = undefined;
  }
}

/** All routes. @param certificate for HTTPS */
function appFor<R extends Endpoint>(options: ServerOptions<R>, seen: Seen, certificate?: CertificateFiles): TemplatedApp {
  const app = certificate ? SSLApp({ cert_file_name: certificate.certificate, key_file_name: certificate.key }) : App();
  app.filter((_connection, change) => {
    seen.idle += change;
  });
  const began = (exchange: Exchange): Exchange => {
    seen.idle--;
    return exchange;
  };
  const listener: Listener = {
    get isClosing() {
      return seen.isClosing;
    },
    over: (exchange) => {
      // A WebSocket is none of these connections any more, and its end is not told above.
      if (exchange.status !== upgraded) seen.idle++;
      options.observe(exchange);
    },
  };
  for (const [path, routes] of Map.groupBy(options.routes, (route) => route.path)) {
    const paramCount = path.split("/").filter((part) => part.startsWith(":")).length;
    if (routes.some(({ socket }) => socket)) {
      const upgrade: typeof socketBehavior.upgrade = (response, request, context) =>
        serve(began(new Exchange(response, request, paramCount, listener, context)), routes, options);
      app.ws<UserData>(path, { ...socketBehavior, upgrade });
    }
    app.any(path, (response, request) => serve(began(new Exchange(response, request, paramCount, listener)), routes, options));
  }
  app.any("/*", (response, request) => serve(began(new Exchange(response, request, 0, listener)), [], options));
  return app;
}

/** Before this returns, uWS requires a response or an abort listener. */
function serve<R extends Endpoint>(exchange: Exchange, routes: readonly R[], options: ServerOptions<R>): void {
  const route = exchange.fault === undefined ? routeOf(exchange, routes) : undefined;
  exchange.endpoint = route;
  options.begun(exchange);
  inTrace(exchange.trace, () => {
    try {
      if (exchange.fault === undefined) dispatch(exchange, route, routes, options);
      else exchange.refuse(new SandgateError("invalid_request", exchange.fault));
    } catch (thrown) {
      options.log.error({ err: thrown }, "a request could not be handled");
      exchange.sendError(SandgateError.from(thrown));
    }
  });
  exchange.detach();
}

function routeOf<R extends Endpoint>(exchange: Exchange, routes: readonly R[]): R | undefined {
  const method = exchange.method === "HEAD" ? "GET" : exchange.method;
  return routes.find((candidate) => candidate.method === method);
}

/** @throws {SandgateError} `invalid_request` for a foreign `Host` or an unsupported Content-Encoding. */
function refuseForeign(exchange: Exchange, hosts: Hosts): void {
  hosts.refuseForeign(exchange.header("host"));
  const encoding = exchange.header("content-encoding");
  if (encoding && encoding.toLowerCase() !== "identity")
    throw new SandgateError("invalid_request", "the Content-Encoding must be identity: send the body as it is");
}

function dispatch<R extends Endpoint>(exchange: Exchange, route: R | undefined, routes: readonly R[], options: ServerOptions<R>): void {
  try {
    refuseForeign(exchange, options.hosts);
  } catch (error) {
    exchange.closeAfter();
    return exchange.sendError(SandgateError.from(error));
  }
  if (options.corsOrigins.length > 0) exchange.commonHeaders = cors(options.corsOrigins, exchange.header("origin"));
  if (route) return options.handle(exchange, route);
  const allowed = routes.flatMap((candidate) => (candidate.method === "GET" ? ["GET", "HEAD"] : [candidate.method]));
  if (allowed.length === 0) return options.notFound(exchange);
  const allow = { allow: [...allowed, "OPTIONS"].join(", ") };
  if (exchange.method === "OPTIONS") return exchange.send(204, "", "", allow);
  exchange.sendError(new SandgateError("method_not_allowed", `${exchange.method} is not allowed here`), allow);
}

/** Response headers for a request from this origin. `*` in the list allows every origin. */
export function cors(allowed: readonly string[], origin: string): Headers {
  if (!origin || !(allowed.includes(origin) || allowed.includes("*"))) return { vary: "origin" };
  return {
    vary: "origin",
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, HEAD, POST, DELETE, OPTIONS",
    "access-control-allow-headers": "content-type, idempotency-key, traceparent, tracestate, x-api-key",
    "access-control-expose-headers": "ratelimit, ratelimit-policy, retry-after, x-request-id",
    "access-control-max-age": "600",
  };
}
