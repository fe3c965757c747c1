/** /healthz: this process answers. /readyz: calls can be carried out. */
import type { Health, Readiness } from "../../shared/schemas/service.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";

export function health(_context: GatewayContext, exchange: Exchange): void {
  const answer: Health = { status: "ok" };
  exchange.sendJson(200, answer);
}

export function readiness(context: GatewayContext, exchange: Exchange): void {
  const nats = context.bus.connected;
  const workers = context.workers.workers().map(({ worker }) => ({
    id: worker.id,
    draining: worker.draining,
    not_enforced: worker.host.filter((check) => check.name.endsWith("_limit") && !check.ok).map((check) => check.name),
  }));
  const ready = nats && workers.some((worker) => !worker.draining);
  const answer: Readiness = { status: ready ? "ready" : "unavailable", nats, workers };
  exchange.sendJson(ready ? 200 : 503, answer, ready ? {} : { "retry-after": "2" });
}
