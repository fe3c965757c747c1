/** Calls that need no key: health checks and the reference. */
import Type from "typebox";
import { Health, Readiness } from "../../../shared/schemas/service.ts";
import { ids } from "../examples.ts";
import { json, ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Operations");

export const health = operation({
  name: "getHealth",
  summary: "Check that this gateway answers",
  success: ok("It answers.", Health, { status: "ok" }),
});

const worker = { id: ids.worker, draining: false, strong: true, not_enforced: [], lacks: [] };

export const readiness = operation({
  name: "getReadiness",
  summary: "Check that calls can be carried out",
  success: ok("NATS is connected and a worker accepts sandboxes.", Readiness, { status: "ready", nats: true, workers: [worker] }),
  others: [
    {
      status: 503,
      description: "NATS cannot be reached, or no worker accepts sandboxes.",
      content: json(Readiness, { status: "unavailable", nats: true, workers: [] }),
    },
  ],
});

export const document = operation({
  name: "getOpenApi",
  summary: "Get this reference as OpenAPI",
  success: ok("An OpenAPI 3.1 document.", Type.Object({ openapi: Type.String() }), { openapi: "3.1.0" }),
});

export const page = operation({
  name: "getReference",
  summary: "Get this reference as a page",
  success: { status: 200, description: "An HTML page.", content: [{ type: "text/html", example: "<!doctype html>…" }] },
});
