/** Messages of refused inputs name the field and its bound. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TSchema } from "typebox";
import { SandgateError } from "../../../../shared/errors.ts";
import { AccountChange } from "../../../../shared/schemas/admin/accounts.ts";
import { commandBytesMax, ExecuteAsyncBody, ExecuteBody } from "../../../../shared/schemas/executions.ts";
import { DownloadQuery, UploadTarget } from "../../../../shared/schemas/files.ts";
import { CreateBody } from "../../../../shared/schemas/sandboxes.ts";
import { LogsQuery } from "../../../../shared/schemas/usage.ts";
import { inputChecker, noInput } from "../../../../shared/schemas/validate.ts";

const whole = "(a whole number of seconds)";
const entry = "a string without NUL of at most 65536 characters, under a name of at most 255 letters, digits and '_'";
const env = "env must be an object of at most 1000 variables, with at most 65536 bytes each and 262144 together";
const variables = (count: number, value = "") => Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, value]));
const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

const cases: [string, TSchema, unknown, string | undefined][] = [
  ["a command alone", ExecuteBody, { command: "ls" }, undefined],
  ["an unknown field", ExecuteBody, { command: "ls", user: "root" }, "Unknown field: user"],
  ["an unknown field inside a field", CreateBody, { image: "x", network: { access: "none", deny_out: ["*"] } }, "Unknown field: network.deny_out"],
  ["an unknown field in one of several shapes", AccountChange, { limits: { burst: 1, sandbox: 2 } }, "Unknown field: limits.sandbox"],
  ["a field by the name of a prototype", ExecuteBody, JSON.parse('{"command":"ls","__proto__":{"command":"x"}}'), "Unknown field: __proto__"],
  ["a field with a long name", ExecuteBody, { command: "ls", ["x".repeat(10_000)]: 1 }, `Unknown field: ${"x".repeat(100)}…`],
  ["more fields than can be looked at", ExecuteBody, { command: "ls", env: variables(60_000) }, "the request must have at most 4096 fields"],
  ["a deep body", ExecuteBody, { command: "ls", deep: nested(100_000) }, "the request must have at most 4096 fields"],
  ["as many variables as may be", ExecuteBody, { command: "ls", env: variables(1_000) }, undefined],
  ["a variable too many", ExecuteBody, { command: "ls", env: variables(1_001) }, env],
  ["variables of too many bytes together", ExecuteBody, { command: "ls", env: variables(5, "x".repeat(60_000)) }, env],
  ["a variable of too many bytes", ExecuteBody, { command: "ls", env: { A: "€".repeat(30_000) } }, env],
  ["a variable with a long name", ExecuteBody, { command: "ls", env: { [`A${"a".repeat(254)}`]: "" } }, undefined],
  ["a variable with too long a name", ExecuteBody, { command: "ls", env: { [`A${"a".repeat(255)}`]: "" } }, `env.A${"a".repeat(95)}… must be ${entry}`],
  ["a command of many bytes", ExecuteBody, { command: "x".repeat(commandBytesMax) }, undefined],
  ["no command", ExecuteBody, {}, "Missing required field: command"],
  ["an empty command", ExecuteBody, { command: "" }, "command must be a string of 1 to 131072 bytes without NUL"],
  ["a command with NUL", ExecuteBody, { command: "a\0b" }, "command must be a string of 1 to 131072 bytes without NUL"],
  ["a command that is a list", ExecuteBody, { command: ["ls"] }, "command must be a string of 1 to 131072 bytes without NUL"],
  ["timeout 0", ExecuteBody, { command: "ls", timeout: 0 }, `timeout must be between 1 and 300 ${whole}`],
  ["timeout 301", ExecuteBody, { command: "ls", timeout: 301 }, `timeout must be between 1 and 300 ${whole}`],
  ["timeout 1.5", ExecuteBody, { command: "ls", timeout: 1.5 }, `timeout must be between 1 and 300 ${whole}`],
  ["a timeout as text", ExecuteBody, { command: "ls", timeout: "30" }, `timeout must be between 1 and 300 ${whole}`],
  ["timeout 300", ExecuteBody, { command: "ls", timeout: 300 }, undefined],
  ["timeout 0 for a stream", ExecuteAsyncBody, { command: "ls", timeout: 0 }, "timeout must be a whole number of seconds, at least 1"],
  ["a relative working_dir", ExecuteBody, { command: "ls", working_dir: "tmp" }, "working_dir must be an absolute path of at most 4096 characters"],
  ["an env value that is null", ExecuteBody, { command: "ls", env: { A: null } }, `env.A must be ${entry}`],
  ["env as text", ExecuteBody, { command: "ls", env: "A=1" }, env],
  [
    "several faults: the first is told",
    CreateBody,
    { image: 1, name: "" },
    'image must be the name of a container image, such as "default" or "docker.io/library/alpine:3"',
  ],
  ["no object", CreateBody, [], "the request must be an object"],
  ["a field inside a field", CreateBody, { image: "x", network: { access: 1 } }, 'network.access must be "none" or "outbound"'],
  ["a relative path", DownloadQuery, { path: "x" }, "path must be an absolute path of at most 4096 characters without NUL"],
  ["a path of 4097 characters", UploadTarget, { path: `/${"x".repeat(4_096)}` }, "path must be an absolute path of at most 4096 characters without NUL"],
  ["a path of 4096 characters", UploadTarget, { path: `/${"x".repeat(4_095)}` }, undefined],
  ["a decimal mode", UploadTarget, { path: "/x", mode: "689" }, "mode must be an octal file mode such as 644 or 0755"],
  ["a limit over its bound", LogsQuery, { limit: 1_001 }, "limit must be between 1 and 1000 (a whole number)"],
];

for (const [what, schema, value, message] of cases) {
  test(`${what} is ${message ? "refused by name" : "taken"}`, () => {
    const { check } = inputChecker(schema);
    if (message === undefined) return void assert.equal(check(value), value);
    assert.throws(
      () => check(value),
      (error: unknown) => {
        assert.ok(error instanceof SandgateError);
        assert.deepEqual([error.code, error.message], ["invalid_request", message]);
        return true;
      },
    );
  });
}

test("a call without input is taken or refused the second time as it was the first", () => {
  const { check: takesNone } = inputChecker(LogsQuery);
  const { check: wantsPath } = inputChecker(DownloadQuery);
  for (let time = 0; time < 2; time++) {
    assert.equal(takesNone(noInput), noInput);
    assert.throws(() => wantsPath(noInput), /Missing required field: path/);
  }
});
