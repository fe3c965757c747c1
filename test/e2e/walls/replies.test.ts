/**
 * Attacks by an account, or by anybody at all, on the processes that serve everybody: answers that become too large, and
 * failures of which nobody takes notice. Each must end one call and nothing else.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { statusOf } from "../../../shared/errors.ts";
import { Accounts } from "../../helpers/accounts.ts";
import type { Answer } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { connect, Refused, type SessionClient, start } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { Witness } from "../../helpers/witness.ts";

/** As long as a command may be; as JSON each of its characters is six. */
const longest = "\u0001".repeat(130_500);
const triesPerMinute = 20;
/** What a synchronous execution keeps of each stream: as JSON more than the memory of `little`. */
const keptBytes = 10 * 1024 * 1024;
/** So little memory that a process which holds such a result as one text comes to its end. */
const little = { NODE_OPTIONS: "--max-old-space-size=128" };
const sessions: SessionClient[] = [];

const stack = await fixture(
  startStack({
    name: "replies",
    settings: { SANDGATE_AUTH_FAILURES_PER_ADDRESS: String(triesPerMinute), SANDGATE_SYNC_OUTPUT_BYTES_MAX: String(keptBytes) },
    environment: little,
  }),
);
const accounts = await fixture(Accounts.open(stack));
const attacker = (await accounts.make()).api;
const sandbox = await attacker.create();
const witness = await Witness.begin(stack, (await accounts.make()).api);

/** Reads the answer without keeping it. */
async function sizeOfResult(command: string): Promise<number> {
  const headers = { "content-type": "application/json" };
  const response = await attacker.raw("POST", `/v1/sandboxes/${sandbox}/execute`, JSON.stringify({ command, timeout: 120 }), headers);
  assert.equal(response.status, 200);
  let bytes = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length;
  assert.equal(bytes, Number(response.headers.get("content-length")));
  return bytes;
}

/** Either the answer, in bounds, or the error that says that it would be too large. */
function expectBounded(answer: Answer): void {
  if (answer.status === statusOf.payload_too_large) expectError(answer, "payload_too_large");
  else expectOk(answer);
}

test("ends the worker by a log of commands that is larger than a message may be", async () => {
  for (let count = 0; count < 11; count++) expectOk(await attacker.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: longest }));
  expectBounded(await attacker.call("GET", "/v1/sandboxes/logs"));
  expectBounded(await attacker.call("GET", `/v1/sandboxes/logs?sandbox_id=${sandbox}&limit=1000`));
  await witness.expectUnharmed();
});

test("ends the worker by a list of sessions that is larger than a message may be", async () => {
  for (let count = 0; count < 11; count++) sessions.push(await start(attacker, sandbox, { command: `sleep 600\n${longest}` }));
  const { data } = expectOk(await attacker.call<{ data: { command: string }[] }>("GET", `/v1/sandboxes/${sandbox}/sessions`));
  assert.equal(data.length, sessions.length);
  await witness.expectUnharmed();
});

test("ends the gateway by results that are six times as large in JSON as in the command's output", async () => {
  const command = `head -c ${keptBytes} /dev/zero | tr '\\0' '\\1' | tee /dev/stderr`;
  assert.ok((await sizeOfResult(command)) > 2 * 6 * keptBytes);
  await witness.expectUnharmed();
});

test("ends the gateway by more wrong session tokens than an address may try", async () => {
  const answers: Refused[] = [];
  for (let count = 0; count < triesPerMinute + 5; count++) {
    const refused = await connect(attacker, sandbox, { headers: {}, query: "?token=wrong" }).then(
      () => assert.fail("a wrong token was taken"),
      (error: unknown) => error,
    );
    assert.ok(refused instanceof Refused, String(refused));
    answers.push(refused);
  }
  assert.equal(answers[0]?.status, statusOf.unauthorized);
  assert.equal(answers.at(-1)?.status, statusOf.rate_limited);
  await witness.expectUnharmed();
});

test("control: after all of this the neighbour's command, which ran through it, ends as it should", async () => {
  await witness.end();
});
