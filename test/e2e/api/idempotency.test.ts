/** Idempotency-Key: a repeated call creates nothing twice, whichever gateway gets it and whatever dies in the meantime. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Accounts } from "../../helpers/accounts.ts";
import type { Answer, Api } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { through } from "../../helpers/limited.ts";
import { listOf, plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

type Created = Answer<{ id: string; status: string }>;

const stack = await fixture(startStack({ name: "idempotency", gateways: 2, settings: plain }));
const accounts = await fixture(Accounts.open(stack));
const account = await accounts.make();
const apis = through(stack, account.api) as [Api, Api];

const wanted = { image: "default", network: { access: "none" } };
const newKey = (): string => `test ${randomBytes(12).toString("base64")}`;
const send = (api: Api, key: string, body: object = wanted): Promise<Created> => api.call("POST", "/v1/sandboxes/create", body, { "idempotency-key": key });
const isReplay = ({ headers }: Created): boolean => headers.get("idempotency-replayed") === "true";
const idsOf = async (api: Api): Promise<string[]> => (await listOf(api)).map(({ id }) => id);

const made = (answer: Created): Created | undefined => (answer.status === 201 ? answer : undefined);

function assertMade(answer: Created): string {
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.id;
}

/** The same answer again, marked as such. */
function assertReplay(answer: Created, first: Created): void {
  assert.equal(answer.status, first.status);
  assert.deepEqual(answer.body, first.body);
  assert.ok(isReplay(answer));
}

/** Starts the first gateway again after a kill; creates go on at once, whichever gateway had counted for the key. */
async function comeBack(): Promise<void> {
  await stack.gateways[0]?.start();
  await stack.ready();
  for (const api of apis) {
    await api.delete(assertMade(await send(api, newKey())));
  }
}

test("the same call gets the first answer, through any gateway, also when its sandbox is gone", async () => {
  const key = newKey();
  const first = await send(apis[0], key);
  const id = assertMade(first);
  assert.ok(!isReplay(first));
  for (const api of [apis[1], apis[0]]) assertReplay(await send(api, key), first);
  assert.deepEqual(await idsOf(apis[1]), [id]);
  await apis[1].delete(id);
  for (const api of apis) assertReplay(await send(api, key), first);
  assert.deepEqual(await idsOf(apis[0]), []);
});

test("the order of fields and defaults that are spelled out make no other call", async () => {
  const key = newKey();
  const first = await send(apis[0], key, { image: "default", name: "same", env_vars: { A: "1", B: "2" }, resources: { cpus: 1, memory: 256 } });
  const id = assertMade(first);
  const again = {
    resources: { memory: 256, storage: 5, cpus: 1 },
    env_vars: { B: "2", A: "1" },
    wait_for_ready: true,
    name: "same",
    image: "default",
  };
  assertReplay(await send(apis[1], key, again), first);
  for (const body of [
    { ...again, name: "other" },
    { ...again, env_vars: { A: "1" } },
    { ...again, wait_for_ready: false },
  ]) {
    expectError(await send(apis[0], key, body), "idempotency_conflict");
  }
  assert.deepEqual(await idsOf(apis[0]), [id]);
  await apis[0].delete(id);
});

test("the same key of another account is another key, that of another key of the account is the same", async () => {
  const stranger = await accounts.make("stranger");
  const sibling = await account.addKey();
  const key = newKey();
  const [first, foreign] = [await send(apis[0], key), await send(stranger.api, key)];
  assert.notEqual(assertMade(first), assertMade(foreign));
  assert.ok(!isReplay(foreign));
  assertReplay(await send(sibling, key), first);
  await Promise.all([apis[0].delete(first.body.id), stranger.api.delete(foreign.body.id)]);
});

test("twenty simultaneous sendings through two gateways make one sandbox, and all are told its id", async () => {
  const key = newKey();
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => send(apis[index % 2] as Api, key)));
  const ids = new Set(answers.map(assertMade));
  assert.equal(ids.size, 1);
  assert.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
  assert.deepEqual(await idsOf(apis[0]), [...ids]);
  await apis[0].delete([...ids][0] as string);
});

test("the first answer is known after kill -9 of the gateway that gave it", async () => {
  const key = newKey();
  const first = await send(apis[0], key);
  assertMade(first);
  await stack.gateways[0]?.kill9();
  await comeBack();
  for (const api of apis) assertReplay(await send(api, key), first);
  await apis[0].delete(first.body.id);
});

/** A create through the first gateway, which is killed while the worker stands still. The worker goes on after `meanwhile`. */
async function cutOff(key: string, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
  for (;;) {
    stack.worker.signal("SIGSTOP");
    const lost = send(apis[0], key).catch(() => undefined);
    try {
      await sleep(400);
      await stack.gateways[0]?.kill9();
      await meanwhile();
    } finally {
      stack.worker.signal("SIGCONT");
    }
    const answer = await lost;
    if (!answer) return;
    // On a busy machine the worker was already considered gone, so nothing was being created.
    assert.equal(answer.status, 503);
    await comeBack();
  }
}

test("kill -9 of the gateway in mid-create: sent again through another one, it is answered with the one sandbox", async () => {
  const key = newKey();
  await cutOff(key);
  // A paused worker may be considered gone for a moment; the call is then sent again, as clients do.
  const answer = await until("an answer", async () => {
    const sent = await send(apis[1], key);
    return sent.status === 503 ? undefined : sent;
  });
  const id = assertMade(answer);
  assert.deepEqual(await idsOf(apis[1]), [id]);
  assert.deepEqual(
    (await stack.containers()).map(({ sandboxId }) => sandboxId),
    [id],
  );
  await comeBack();
  assertReplay(await send(apis[0], key), answer);
  await apis[0].delete(id);
});

test("a call that is sent again while the worker hangs and its first gateway is dead makes one sandbox", async () => {
  const key = newKey();
  let again: Promise<Created> | undefined;
  await cutOff(key, async () => {
    again = send(apis[1], key);
    // By now the second gateway has looked for the sandbox, and has not given up the worker.
    await sleep(1_800);
  });
  // On a busy machine the worker has been given up after all; its clients send the call once more then.
  const first = await again;
  assert.ok(first);
  const answer = first.status === 503 ? await until("the call is carried out", async () => made(await send(apis[1], key))) : first;
  const id = assertMade(answer);
  // A second sandbox would be in the directory before its container is made.
  await sleep(1_000);
  assert.deepEqual(await idsOf(apis[1]), [id]);
  await comeBack();
  await apis[0].delete(id);
});

test("a call that failed can be sent again and is carried out again", async () => {
  const key = newKey();
  const missing = { ...wanted, image: "localhost/no-such-image:latest" };
  for (const api of apis) {
    const answer = await send(api, key, missing);
    expectError(answer, "unprocessable");
    assert.ok(!isReplay(answer));
  }
  const answer = await send(apis[0], key);
  assert.ok(!isReplay(answer), "a call that made nothing does not bind its key");
  await apis[0].delete(assertMade(answer));
});

test("a call that the limit refused can be sent again when there is room", async () => {
  const [first, second] = through(stack, await account.addKey({ limits: { sandboxes: 1 } })) as [Api, Api];
  const key = newKey();
  const id = assertMade(await send(first, newKey()));
  for (const api of [first, second]) expectError(await send(api, key), "sandbox_limit_reached");
  await first.delete(id);
  const answer = await send(second, key);
  assert.ok(!isReplay(answer));
  assertReplay(await send(first, key), answer);
  await first.delete(assertMade(answer));
});

test("a call that no worker could take can be sent again", async () => {
  const key = newKey();
  await stack.worker.kill9();
  expectError(await send(apis[0], key), "unavailable");
  await stack.worker.start();
  for (const url of stack.urls) await stack.ready(url);
  const answer = await send(apis[1], key);
  const id = assertMade(answer);
  assertReplay(await send(apis[0], key), answer);
  assert.deepEqual(await idsOf(apis[0]), [id]);
  await apis[0].delete(id);
});

test("a key must be 1 to 255 printable ASCII characters; an empty one is none", async () => {
  for (const key of ["k".repeat(256), "schlüssel", "a\tb"]) expectError(await send(apis[0], key), "invalid_request", /Idempotency-Key/);
  const made = await Promise.all([send(apis[0], ""), send(apis[0], ""), send(apis[0], "k".repeat(255))]);
  assert.equal(new Set(made.map(assertMade)).size, 3);
  assert.ok(!made.some(isReplay));
  await Promise.all(made.map(({ body }) => apis[0].delete(body.id)));
});
