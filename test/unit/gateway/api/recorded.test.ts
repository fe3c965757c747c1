/** Which calls are in the audit record, as the route table says it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "../../../../gateway/api/routes.ts";

const calls = routes.filter((route) => route.access !== "open");

test("every operator's call that changes something is recorded, and no call that only reads", () => {
  for (const { access, method, path, recorded } of calls) {
    if (access === "operator") assert.equal(recorded, method !== "GET", path);
    if (method === "GET") assert.ok(!recorded, path);
  }
});

test("log-ins, sign-ups, passwords and a person's own keys are recorded, and the everyday work with sandboxes is not", () => {
  const recorded = calls.filter((route) => route.recorded && route.access !== "operator").map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(recorded, [
    "POST /v1/auth/signup",
    "POST /v1/auth/login",
    "POST /v1/auth/logout",
    "POST /v1/account/password",
    "POST /v1/account/keys",
    "DELETE /v1/account/keys/:id",
  ]);
});
