/** The HTTP listener: turns every request into an exchange and hands it to its route. */
import { App, type us_listen_socket, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";
import { SandgateError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type Endpoint, Exchange, type Headers } from "./exchange.ts";
import type { Hosts } from "./hosts.ts";
import { boundReceiveBuffer } from "./receive-buffer.ts";
import { socketBehavior, type UserData } from "./sockets.ts";

interface ServerOptions<R extends Endpoint> {
  readonly routes: readonly R[];
  readonly corsOrigins: readonly string[];
  readonly hosts: Hosts;
  /** Path of the operator's Unix socket, which serves the same routes. */
  readonly operatorSocket: string;
  readonly log: Logger;
  /** Answers an exchange by its route. Never throws. */
  readonly handle: (exchange: Exchange, route: R) => void;
  /** Answers an exchange with an unknown path. */
  readonly notFound: (exchange: Exchange) => void;
  /** Called at the start of every exchange. */
  readonly begun?: (exchange: Exchange) => void;
  /** Called at the end of every exchange. */
  readonly observe: (exchange: Exchange) => void;
}

export interface Server {
  readonly port: number;
  /** From now on, connections are closed after the answer to their next request, so that clients open others elsewhere. */
  closeAfterAnswers(): void;
  /** Accepts no new connections; open exchanges continue. */
  stopListening(): void;
  /** When the last request came, in milliseconds of `performance.now()`. */
  readonly lastRequestAtMs: number;
  /** Closes all connections. */
  close(): void;
}

const operatorSocketFailed = "cannot listen on the operator's Unix socket (is its path longer than 107 bytes?); sandgate-admin needs SANDGATE_URL";

/** Listens on host and port, and on the operator's Unix socket. @throws {Error} when it cannot listen on the address. */
export function listen<R extends Endpoint>(host: string, port: number, options: ServerOptions<R>): Promise<Server> {
  const app = App();
  let lastRequestAtMs = 0;
  let isClosing = false;
  const began = (exchange: Exchange): Exchange => {
    lastRequestAtMs = performance.now();
    if (isClosing) exchange.closeAfter();
    return exchange;
  };
  for (const [path, routes] of Map.groupBy(options.routes, (route) => route.path)) {
    const paramCount = path.split("/").filter((part) => part.startsWith(":")).length;
    if (routes.some(({ socket }) => socket)) {
      const upgrade: typeof socketBehavior.upgrade = (response, request, context) =>
        serve(began(new Exchange(response, request, paramCount, options.observe, context)), routes, options);
      app.ws<UserData>(path, { ...socketBehavior, upgrade });
    }
    app.any(path, (response, request) => serve(began(new Exchange(response, request, paramCount, options.observe)), routes, options));
  }
  app.any("/*", (response, request) => serve(began(new Exchange(response, request, 0, options.observe)), [], options));
  return new Promise((resolve, reject) => {
    app.listen(host, port, (socket: us_listen_socket | false) => {
      if (!socket) return reject(new Error(`cannot listen on ${host}:${port}`));
      boundReceiveBuffer(us_socket_local_port(socket), options.log);
      const open = new Set([socket]);
      // Replaces the socket file of a gateway that was killed.
      app.listen_unix((local: us_listen_socket | false) => {
        if (local) open.add(local);
        else options.log.warn({ event: "operator_socket_failed", path: options.operatorSocket }, operatorSocketFailed);
      }, options.operatorSocket);
      const stopListening = (): void => {
        for (const listening of open) us_listen_socket_close(listening);
        open.clear();
      };
      const closeAfterAnswers = (): void => {
        isClosing = true;
      };
      resolve({
        ...{ port: us_socket_local_port(socket), closeAfterAnswers, stopListening, close: () => app.close() },
        get lastRequestAtMs() {
          return lastRequestAtMs;
        },
      });
    });
  });
}

/** Before this returns, uWS requires a response or an abort listener. */
function serve<R extends Endpoint>(exchange: Exchange, routes: readonly R[], options: ServerOptions<R>): void {
  try {
    if (exchange.fault === undefined) dispatch(exchange, routes, options);
    else refuse(exchange, exchange.fault, options);
  } catch (thrown) {
    options.log.error({ err: thrown, request_id: exchange.requestId }, "a request could not be handled");
    exchange.sendError(SandgateError.from(thrown));
  }
  exchange.detach();
}

function refuse(exchange: Exchange, fault: string, { begun }: Pick<ServerOptions<Endpoint>, "begun">): void {
  begun?.(exchange);
  exchange.refuse(new SandgateError("invalid_request", fault));
}

/** @throws {SandgateError} `invalid_request` for a foreign `Host` or an unsupported Content-Encoding. */
function refuseForeign(exchange: Exchange, hosts: Hosts): void {
  hosts.refuseForeign(exchange.header("host"));
  const encoding = exchange.header("content-encoding");
  if (encoding && encoding.toLowerCase() !== "identity")
    throw new SandgateError("invalid_request", "the Content-Encoding must be identity: send the body as it is");
}

function dispatch<R extends Endpoint>(exchange: Exchange, routes: readonly R[], options: ServerOptions<R>): void {
  const method = exchange.method === "HEAD" ? "GET" : exchange.method;
  let route: R | undefined;
  for (const candidate of routes) if (candidate.method === method) route = candidate;
  exchange.endpoint = route;
  options.begun?.(exchange);
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
    "access-control-allow-headers": "content-type, idempotency-key, x-api-key",
    "access-control-expose-headers": "ratelimit, ratelimit-policy, retry-after, x-request-id",
    "access-control-max-age": "600",
  };
}
