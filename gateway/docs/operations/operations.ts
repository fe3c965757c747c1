/** Calls that need no key: whether the service works, and the reference. */
import Type from "typebox";
import { Health, Readiness } from "../../../shared/schemas/service.ts";
import { ids } from "../examples.ts";
import { json, type OperationDocs, ok } from "../operation.ts";

const tag = "Operations";

export const health = {
  tag,
  name: "getHealth",
  summary: "Whether this gateway answers",
  success: ok("It does.", Health, { status: "ok" }),
  failures: {},
} satisfies OperationDocs;

const worker = { id: ids.worker, draining: false, not_enforced: [] };

export const readiness = {
  tag,
  name: "getReadiness",
  summary: "Whether calls can be carried out",
  success: ok("They can.", Readiness, { status: "ready", nats: true, workers: [worker] }),
  others: [
    {
      status: 503,
      description: "NATS cannot be reached, or no worker takes sandboxes.",
      content: json(Readiness, { status: "unavailable", nats: true, workers: [] }),
    },
  ],
  failures: {},
} satisfies OperationDocs;

export const document = {
  tag,
  name: "getOpenApi",
  summary: "This reference, for programs",
  success: ok("An OpenAPI 3.1 document.", Type.Object({ openapi: Type.String() }), { openapi: "3.1.0" }),
  failures: {},
} satisfies OperationDocs;

export const page = {
  tag,
  name: "getReference",
  summary: "This reference, for people",
  success: { status: 200, description: "A page.", content: [{ type: "text/html", example: "<!doctype html>…" }] },
  failures: {},
} satisfies OperationDocs;
