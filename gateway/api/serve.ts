/** Starts the API: the listeners, the pipeline and the metrics. */
import { operatorSocketOf } from "../../shared/config.ts";
import { errors } from "../../shared/known-errors.ts";
import { pause, until } from "../../shared/waiting.ts";
import type { GatewayContext } from "../context.ts";
import { notFound } from "../handlers/pages.ts";
import { certificateFiles, watchCertificate } from "../http/certificate.ts";
import { Hosts } from "../http/hosts.ts";
import { listen, type Server } from "../http/server.ts";
import { Metrics } from "../metrics/metrics.ts";
import { Admission, endWithTheirRights } from "./admission.ts";
import { logWhenOver } from "./audit.ts";
import { handle, type Pipeline } from "./pipeline.ts";
import { routes } from "./routes.ts";
import { recordCall } from "./tracing.ts";

const pollMs = 50;
const endMs = 1_000;
/** Connections on which nothing comes have been closed by then: uWebSockets.js does so after ten seconds, give or take its clock's four. */
const leaveMsMax = 15_000;

/** Starts listening. @returns the port. @throws {Error} when it cannot listen on an address. */
export async function serve(context: GatewayContext): Promise<number> {
  const { config, log, shutdown, sockets } = context;
  const admission = new Admission(config.requestsMax);
  endWithTheirRights(context, admission);
  const hosts = new Hosts(config);
  const metrics = new Metrics({ ...context, inProgress: () => admission.inProgress });
  shutdown.onStop("metrics", await metrics.listen(config, hosts));
  const pipeline: Pipeline = { context, admission };
  const certificate = certificateFiles(config);
  const server = await listen(config.host, config.port, {
    certificate,
    routes,
    corsOrigins: config.corsOrigins,
    hosts,
    operatorSocket: operatorSocketOf(config.dataDir),
    log,
    handle: (exchange, route) => handle(pipeline, exchange, route),
    notFound: (exchange) => notFound(context, exchange),
    observe: (exchange) => metrics.observe(exchange),
    begun: (exchange) => {
      recordCall(exchange);
      if (config.accessLog) logWhenOver(log, exchange, config.trustProxy);
    },
  });
  shutdown.onStop("server", () => server.close());
  if (certificate)
    shutdown.onStop(
      "certificate",
      watchCertificate(certificate, log, () => server.renew()),
    );
  shutdown.onStop("drain", () => {
    sockets.drain();
    return drain(server, admission, context);
  });
  shutdown.onStop("listener", () => leave(server, context));
  return server.port;
}

/**
 * Hands over to the other gateways: takes calls until every connection has been told with an answer that it closes, or was idle for
 * too long. To close one earlier could meet a request that is on its way. Without others, it would only keep callers from coming back later.
 */
async function leave(server: Server, context: GatewayContext): Promise<void> {
  server.closeAfterAnswers();
  await pause(context.config.leaveMs);
  server.stopListening();
  if (hasOthers(context)) await until(() => server.idle === 0, { pollMs, timeoutMs: leaveMsMax });
}

/**
 * Running calls finish, or end with an error after `drainMs`. New ones get 503; but where there are other gateways, not before: whoever
 * had a long answer under way was not told that its connection closes, and may send one more call on it.
 */
async function drain(server: Server, admission: Admission, context: GatewayContext): Promise<void> {
  const { hub, config } = context;
  const mayCallAgain = (): boolean => hasOthers(context) && server.idle > 0;
  if (!hasOthers(context)) admission.drain();
  await until(() => admission.inProgress === 0 && !mayCallAgain(), { pollMs, timeoutMs: config.drainMs });
  admission.drain();
  hub.abortAll(errors.stopping("gateway"));
  await until(() => admission.inProgress === 0, { pollMs, timeoutMs: endMs });
}

const hasOthers = ({ peers }: GatewayContext): boolean => [...peers.present()].some(({ gateway }) => gateway !== undefined);
