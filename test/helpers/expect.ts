/** Checks what every answer of the API has in common. */
import assert from "node:assert/strict";
import { type ErrorCode, type ErrorReason, reasonsOf, statusOf } from "../../shared/errors.ts";
import type { Answer } from "./api.ts";

export const isoTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
export const sandboxId = /^sb_[0-9a-z]{26}$/;
export const requestId = /^req_[0-9a-z]{26}$/;

interface ErrorBody {
  readonly error: { readonly code: string; readonly reason?: string; readonly message: string; readonly request_id: string };
}

/** Checks the error envelope: exactly its members, the status of its code, the request id of the header. Returns the message. */
export function expectError(answer: Answer<unknown>, code: ErrorCode, message?: RegExp | string, reason?: ErrorReason): string {
  const { error } = answer.body as ErrorBody;
  assert.deepEqual(Object.keys(answer.body as ErrorBody), ["error"], `expected ${code}, got ${answer.status}: ${JSON.stringify(answer.body)}`);
  const reasons: readonly string[] | undefined = (reasonsOf as Readonly<Partial<Record<ErrorCode, readonly string[]>>>)[code];
  assert.deepEqual(Object.keys(error).sort(), ["code", "message", ...(reasons ? ["reason"] : []), "request_id"]);
  if (reasons) assert.ok(reasons.includes(error.reason ?? ""), `${code} with the reason ${error.reason}`);
  assert.equal(error.code, code, error.message);
  assert.equal(answer.status, statusOf[code]);
  assert.match(error.request_id, requestId);
  assert.equal(answer.headers.get("x-request-id"), error.request_id);
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
  assert.doesNotMatch(error.message, /\bat .*\.ts:\d+|node_modules/, "a stack has left the process");
  if (reason) assert.equal(error.reason, reason);
  if (typeof message === "string") assert.equal(error.message, message);
  else if (message) assert.match(error.message, message);
  if (["rate_limited", "sandbox_limit_reached", "unavailable", "worker_lost"].includes(code))
    assert.match(answer.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  return error.message;
}

/** Checks that an answer is successful and returns its body. */
export function expectOk<T>(answer: Answer<T>, status = 200): T {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.match(answer.headers.get("x-request-id") ?? "", requestId);
  return answer.body;
}

/** Checks the members that every sandbox in a response has, with their types. */
export function expectSandbox(sandbox: Record<string, unknown>): void {
  const { id, name, status, image, created_at, cpu, memory, storage, disk_size, network, isolation, ...others } = sandbox;
  const { memory_restored, memory_reason, ...rest } = others;
  assert.match(id as string, sandboxId);
  assert.match(name as string, /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/);
  assert.ok(["creating", "running", "error", "deleting"].includes(status as string));
  assert.equal(typeof image, "string");
  assert.match(created_at as string, isoTime);
  for (const number of [cpu, memory, storage, disk_size]) assert.ok(Number.isInteger(number), JSON.stringify(sandbox));
  assert.equal(disk_size, storage);
  assert.ok(["none", "outbound"].includes((network as { access: string }).access));
  assert.deepEqual(Object.keys(network as object), ["access"]);
  assert.ok(["standard", "strong"].includes(isolation as string));
  assert.equal(typeof memory_restored, "boolean");
  assert.ok(memory_reason === null || (typeof memory_reason === "string" && !memory_restored), JSON.stringify(sandbox));
  assert.deepEqual(Object.keys(rest), status === "error" ? ["error"] : []);
}
