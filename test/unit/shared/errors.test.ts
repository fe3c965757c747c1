import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, type ErrorReason, errorCodes, errorReasons, reasonsOf, SandgateError, statusOf } from "../../../shared/errors.ts";

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
  worker_lost: 503,
  insufficient_storage: 507,
};

const reasons: Readonly<Partial<Record<ErrorCode, readonly ErrorReason[]>>> = reasonsOf;

/** An error of any code, with a reason where there must be one. */
const errorOf = (code: ErrorCode, message = ""): SandgateError => {
  const [reason] = reasons[code] ?? [];
  return SandgateError.fromWire({ code, message, ...(reason ? { reason } : {}) });
};

test("every code has the documented status, and there is no other code", () => {
  assert.deepEqual(statusOf, documented);
  assert.deepEqual([...errorCodes].sort(), Object.keys(documented).sort());
  for (const code of errorCodes) assert.equal(errorOf(code).status, documented[code]);
});

test("an error that travelled over the bus is the same error", () => {
  for (const code of errorCodes) {
    const reason = reasons[code]?.at(-1);
    const wire = { code, message: `about ${code}`, ...(reason ? { reason } : {}), retry_after_s: 7 };
    const arrived = SandgateError.fromWire(JSON.parse(JSON.stringify(wire)));
    assert.deepEqual([arrived.code, arrived.message, arrived.reason, arrived.retryAfterS], [code, `about ${code}`, reason, 7]);
    assert.deepEqual(JSON.parse(JSON.stringify(arrived.toWire())), wire);
  }
  for (const refused of [{}, { refused: true }] as const) {
    const wire = new SandgateError("conflict", "busy", refused).toWire();
    assert.deepEqual(wire, { code: "conflict", message: "busy", ...refused });
    assert.equal(SandgateError.fromWire(wire).isRefusal, "refused" in refused);
  }
  const secretive = new SandgateError("not_found", "gone", { reason: "no_such_file", cause: new Error("secret") });
  assert.deepEqual(secretive.toWire(), { code: "not_found", message: "gone", reason: "no_such_file" });
});

test("not_found and unprocessable cannot be made without a reason of theirs, the others not with one", () => {
  // @ts-expect-error: no reason
  new SandgateError("not_found", "");
  // @ts-expect-error: another code's reason
  new SandgateError("unprocessable", "", { reason: "no_such_file" });
  // @ts-expect-error: a reason where none belongs
  new SandgateError("conflict", "", { reason: "exists" });
  assert.equal(new Set(errorReasons).size, errorReasons.length);
});

test("errors that ask the client to come back say when, the others do not", () => {
  for (const code of errorCodes) {
    const { retryAfterS } = errorOf(code);
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
