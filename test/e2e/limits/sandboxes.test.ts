/** Sandboxes at the same time: exact over three gateways, and nothing leaks when parts are killed in mid-create. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Accounts, type TestAccount } from "../../helpers/accounts.ts";
import type { Answer, Api } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { gatewayId, noticedGone, ownerIndex, through } from "../../helpers/limited.ts";
import { listOf, plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

type Created = Answer<{ id: string; status: string }>;

const stack = await fixture(startStack({ name: "limits-sandboxes", gateways: 3, settings: plain }));
const accounts = await fixture(Accounts.open(stack));

/** An account whose keys may each have so many sandboxes, and its first key through each gateway. */
async function limitedTo(sandboxes: number): Promise<{ account: TestAccount; apis: [Api, Api, Api] }> {
  const account = await accounts.make("limited", { tier: "enterprise", limits: { sandboxes } });
  return { account, apis: through(stack, account.api) as [Api, Api, Api] };
}

const create = (api: Api, options: object = {}): Promise<Created> =>
  api.call("POST", "/v1/sandboxes/create", { image: "default", network: { access: "none" }, ...options });
const remove = async (api: Api, id: string): Promise<void> => assert.equal((await api.call("DELETE", `/v1/sandboxes/${id}/delete`)).status, 200);
const withStatus = (answers: readonly Created[], status: number): Created[] => answers.filter((answer) => answer.status === status);

/** Deletes what an account has, also what is still being made. */
async function removeAll(api: Api): Promise<void> {
  await until("no sandbox", async () => {
    await api.call("DELETE", "/v1/sandboxes/delete-all");
    return (await listOf(api)).length === 0;
  });
}

/** Creates until the key has exactly `limit` sandboxes and gets no more; never more on the way there. */
async function assertRoomFor(limit: number, apis: readonly Api[]): Promise<void> {
  const [first] = apis as [Api];
  const answered = new Set<number>();
  let most = 0;
  await until(`${limit} sandboxes`, async () => {
    for (const { status } of await Promise.all(apis.map((api) => create(api)))) answered.add(status);
    const { length } = await listOf(first);
    most = Math.max(most, length);
    return length >= limit;
  });
  for (const status of answered) assert.ok([201, 429, 503].includes(status), `${status}`);
  assert.equal(most, limit);
  for (const api of apis) expectError(await create(api), "sandbox_limit_reached");
  // What a part that was killed had begun would have come by now.
  await sleep(1_500);
  assert.equal((await listOf(first)).length, limit);
  await removeAll(first);
}

test("of 100 simultaneous creates through three gateways exactly the limit succeeds, the others are told to come back", async () => {
  const { apis } = await limitedTo(10);
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => create(apis[index % 3] as Api, { wait_for_ready: index % 2 === 0 })));
  const made = withStatus(answers, 201);
  assert.equal(made.length, 10);
  for (const answer of answers) if (answer.status !== 201) expectError(answer, "sandbox_limit_reached", /10 sandboxes at the same time/);
  assert.equal((await listOf(apis[2])).length, 10);
  await until("all of them run", async () => (await listOf(apis[0])).every(({ status }) => status === "running"));
  for (const [index, { body }] of made.slice(0, 3).entries()) {
    await remove(apis[index] as Api, body.id);
    const next = await Promise.all(apis.map((api) => create(api, { wait_for_ready: false })));
    assert.deepEqual(next.map(({ status }) => status).sort(), [201, 429, 429], "one place is free at once, for every gateway");
  }
  await removeAll(apis[0]);
});

test("a create that fails gives its place back at once", async () => {
  const { apis } = await limitedTo(1);
  for (const api of [...apis, ...apis]) expectError(await create(api, { image: "localhost/no-such-image:latest" }), "unprocessable");
  expectError(await create(apis[1], { image: 5 }), "invalid_request");
  assert.equal((await create(apis[2])).status, 201);
  expectError(await create(apis[0]), "sandbox_limit_reached", /1 sandbox at the same time/);
  await removeAll(apis[0]);
});

test("each key of an account has places of its own, and a key's number goes before its account's", async () => {
  const { account, apis } = await limitedTo(1);
  const more = through(stack, await account.addKey({ limits: { sandboxes: 2 } }));
  assert.equal((await create(apis[0])).status, 201);
  const answers = await Promise.all([...more, ...apis].map((api) => create(api, { wait_for_ready: false })));
  assert.equal(withStatus(answers, 201).length, 2);
  for (const [index, { status }] of answers.entries()) if (index >= 3) assert.equal(status, 429);
  await until("all three in the list, because sandboxes belong to the account", async () => (await listOf(apis[1])).length === 3);
  await removeAll(more[0] as Api);
});

test("kill -9 of a gateway in mid-create leaks no place", async () => {
  const { account, apis } = await limitedTo(4);
  const owner = ownerIndex(stack, await accounts.idOfKey(account.api.apiKey));
  const killed = (owner + 1) % 3;
  const rest = [0, 1, 2].filter((index) => index !== killed);
  const broken = Promise.allSettled(Array.from({ length: 6 }, () => create(apis[killed] as Api)));
  await until("a container in the making", async () => (await stack.containers()).length > 0);
  await stack.gateways[killed]?.kill9();
  await broken;
  await assertRoomFor(
    4,
    rest.map((index) => apis[index] as Api),
  );
  await stack.gateways[killed]?.start();
  await stack.ready(stack.urls[killed]);
});

test("kill -9 of the gateway that counts, amid creates through all: never more than the limit, and no place leaks", async () => {
  const { account, apis } = await limitedTo(4);
  const owner = ownerIndex(stack, await accounts.idOfKey(account.api.apiKey));
  const others = [0, 1, 2].filter((index) => index !== owner);
  const calls = Array.from({ length: 9 }, (_, index) => create(apis[index % 3] as Api, { wait_for_ready: index % 2 === 0 }));
  await Promise.race(calls);
  const killed = gatewayId(stack, owner);
  await stack.gateways[owner]?.kill9();
  await Promise.allSettled(calls);
  await noticedGone(stack, killed, others);
  await assertRoomFor(
    4,
    others.map((index) => apis[index] as Api),
  );
  await stack.gateways[owner]?.start();
  await stack.ready(stack.urls[owner]);
});

test("kill -9 of the worker in mid-create leaks no place", async () => {
  const { apis } = await limitedTo(4);
  const calls = Array.from({ length: 6 }, (_, index) => create(apis[index % 3] as Api, { wait_for_ready: index < 4 }));
  await until("a container in the making", async () => (await stack.containers()).length > 0);
  await stack.worker.kill9();
  for (const { status, body } of await Promise.all(calls)) assert.ok([201, 429, 503].includes(status), JSON.stringify(body));
  await stack.worker.start();
  for (const url of stack.urls) await stack.ready(url);
  await assertRoomFor(4, apis);
});

test("a gateway that is stopped and started between creates knows what is taken", async () => {
  const { account, apis } = await limitedTo(2);
  const owner = ownerIndex(stack, await accounts.idOfKey(account.api.apiKey));
  const next = apis[(owner + 1) % 3] as Api;
  assert.equal((await create(apis[owner] as Api)).status, 201);
  await stack.gateways[owner]?.stop();
  assert.equal((await create(next)).status, 201);
  expectError(await create(next), "sandbox_limit_reached");
  await stack.gateways[owner]?.start();
  await stack.ready(stack.urls[owner]);
  for (const api of apis) expectError(await create(api), "sandbox_limit_reached");
  await removeAll(next);
});
