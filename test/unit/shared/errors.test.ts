import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, errorCodes, SandgateError, statusOf } from "../../../shared/errors.ts";

const documented: Record<ErrorCode, number> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  idempotency_conflict: 409,
  payload_too_large: 413,
  unprocessable: 422,
  rate_limited: 429,
  sandbox_limit_reached: 429,
  internal_error: 500,
  unavailable: 503,
  insufficient_storage: 507,
};

test("every code has the documented status, and there is no other code", () => {
  assert.deepEqual(statusOf, documented);
  assert.deepEqual([...errorCodes].sort(), Object.keys(documented).sort());
  for (const code of errorCodes) assert.equal(new SandgateError(code, "").status, documented[code]);
});

test("an error that travelled over the bus is the same error", () => {
  for (const code of errorCodes) {
    const error = new SandgateError(code, `about ${code}`, { cause: new Error("secret"), retryAfterS: 7 });
    const wire = JSON.parse(JSON.stringify(error.toWire()));
    const arrived = SandgateError.fromWire(wire);
    assert.deepEqual([arrived.code, arrived.message, arrived.retryAfterS], [code, `about ${code}`, 7]);
    assert.doesNotMatch(JSON.stringify(wire), /secret|stack/);
  }
});

test("errors that ask the client to come back say when, the others do not", () => {
  for (const code of errorCodes) {
    const { retryAfterS } = new SandgateError(code, "");
    if ([429, 503].includes(statusOf[code])) assert.ok(Number.isInteger(retryAfterS) && Number(retryAfterS) >= 1, code);
    else assert.equal(retryAfterS, undefined, code);
  }
});

test("what is not our error becomes internal_error and tells nothing of itself", () => {
  for (const thrown of [new Error("/var/lib/secret"), "/var/lib/secret", { secret: 1 }, undefined, null]) {
    const error = SandgateError.from(thrown);
    assert.equal(error.code, "internal_error");
    assert.doesNotMatch(JSON.stringify(error.toWire()), /secret/);
    assert.equal(error.cause, thrown);
  }
});

test("our own error passes unchanged", () => {
  const error = new SandgateError("conflict", "busy");
  assert.equal(SandgateError.from(error), error);
});
