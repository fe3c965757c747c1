/** Requests a minute through three gateways, which are killed, stopped, suspended and started meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Accounts } from "../../helpers/accounts.ts";
import type { Answer, Api } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { gatewayId, noticedGone, ownerIndex, spend, through } from "../../helpers/limited.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const stack = await fixture(startStack({ name: "limits-rate", gateways: 3, settings: plain }));
const accounts = await fixture(Accounts.open(stack));
const account = await accounts.make("limited", { tier: "beta" });

const limitedTo = (requests_per_minute: number, burst?: number): Promise<Api> =>
  account.addKey({ limits: { requests_per_minute, ...(burst ? { burst } : {}) } });
const list = (api: Api): Promise<Answer> => api.call("GET", "/v1/sandboxes/list");
const policyOf = ({ headers }: Answer): string | null => headers.get("ratelimit-policy");
const remainingOf = ({ headers }: Answer): number => Number(/^"requests";r=(\d+);t=\d+$/.exec(headers.get("ratelimit") ?? "")?.[1] ?? Number.NaN);

/** Which gateway counts for the key, and the others. */
async function placesOf(api: Api): Promise<{ owner: number; others: [number, number] }> {
  const owner = ownerIndex(stack, await accounts.idOfKey(api.apiKey));
  const others = [0, 1, 2].filter((index) => index !== owner);
  return { owner, others: others as [number, number] };
}

async function restart(index: number): Promise<void> {
  await stack.gateways[index]?.start();
  await stack.ready(stack.urls[index]);
}

/** Asks one gateway after the other until nothing has been let through for some rounds; returns how much was. */
async function exhaust(apis: readonly Api[]): Promise<number> {
  let admitted = 0;
  for (let quiet = 0; quiet < 3; await sleep(300)) {
    const spent = await spend(apis, 2 * apis.length);
    admitted += spent.admitted;
    quiet = spent.admitted === 0 ? quiet + 1 : 0;
  }
  return admitted;
}

test("every answer to a known key says what is left, whatever the answer is", async () => {
  const apis = through(stack, await limitedTo(10));
  const answers = [
    await list(apis[0] as Api),
    await (apis[1] as Api).call("GET", "/v1/sandboxes/sb_unknown"),
    await (apis[2] as Api).call("POST", "/v1/sandboxes/create", { image: 7 }),
    await (apis[0] as Api).call("DELETE", "/v1/sandboxes/sb_unknown/delete"),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 404, 400, 404],
  );
  for (const [index, answer] of answers.entries()) {
    assert.equal(policyOf(answer), '"requests";q=10;w=60');
    assert.equal(remainingOf(answer), 9 - index);
  }
  const { headers } = await fetch(`${stack.url}/v1/sandboxes/list`);
  assert.equal(headers.get("ratelimit"), null);
});

test("of simultaneous calls through all gateways exactly the limit is answered, the others are told when to come back", async () => {
  const { admitted, refused } = await spend(through(stack, await limitedTo(10)), 40);
  assert.equal(admitted, 10);
  for (const answer of refused) {
    expectError(answer, "rate_limited", /10 requests a minute/);
    assert.equal(remainingOf(answer), 0);
    const waitS = Number(answer.headers.get("retry-after"));
    // A minute after the first call, in whole seconds: a refusal may have been asked for before that was counted.
    assert.ok(waitS > 30 && waitS <= 61, `${waitS}`);
  }
});

test("whoever waits as long as the refusal says is let in, through any gateway", async () => {
  const apis = through(stack, await limitedTo(30, 2));
  assert.equal((await spend(apis, 6)).admitted, 2);
  for (const api of apis) {
    const refused = await list(api);
    assert.equal(refused.status, 429);
    await sleep(1_000 * Number(refused.headers.get("retry-after")));
    assert.equal((await list(api)).status, 200);
  }
});

test("a key has the limits of its account unless it has a tier or numbers of its own, and no key spends another's", async () => {
  const keys = [await account.addKey(), await account.addKey({ tier: "pro" }), await account.addKey({ tier: "pro", limits: { requests_per_minute: 5 } })];
  const [ofAccount, ofTier, ofOwn] = keys.map((api) => through(stack, api)) as [Api[], Api[], Api[]];
  assert.equal((await spend(ofOwn, 9)).admitted, 5);
  // Some of the last may for a moment be kept for a gateway that is not asked any more.
  assert.equal((await spend(ofAccount, 66)).admitted + (await exhaust(ofAccount)), 60);
  assert.equal(policyOf(await list(ofOwn[1] as Api)), '"requests";q=5;w=60');
  assert.equal(policyOf(await list(ofAccount[2] as Api)), '"requests";q=60;w=60');
  const answer = await list(ofTier[0] as Api);
  assert.equal(policyOf(answer), '"requests";q=300;w=60');
  assert.equal(remainingOf(answer), 299);
  const numbered = await accounts.make("numbered", { tier: "pro", limits: { requests_per_minute: 3 } });
  const own = await numbered.addKey();
  for (const api of [numbered.api, own]) assert.equal((await spend(through(stack, api), 5)).admitted, 3);
});

test("SIGTERM of the gateway that counts: the next one goes on, and a newly started one does not begin anew", async () => {
  const api = await limitedTo(30);
  const more = await Promise.all(Array.from({ length: 8 }, () => limitedTo(4)));
  const { owner, others } = await placesOf(api);
  const apis = through(stack, api);
  const rest = others.map((index) => apis[index] as Api);
  assert.equal((await spend(apis, 20)).admitted, 20);
  await stack.gateways[owner]?.stop();
  assert.equal(await exhaust(rest), 10);
  for (const key of more)
    assert.equal(
      (
        await spend(
          others.map((index) => through(stack, key)[index] as Api),
          8,
        )
      ).admitted,
      4,
    );
  await restart(owner);
  for (const key of [api, ...more]) assert.equal((await spend(through(stack, key), 6)).admitted, 0);
});

test("kill -9 of the gateway that counts lets at most one more burst through", async () => {
  const api = await limitedTo(12);
  const { owner, others } = await placesOf(api);
  const apis = through(stack, api);
  const rest = others.map((index) => apis[index] as Api);
  assert.equal((await spend(apis, 20)).admitted, 12);
  const killed = gatewayId(stack, owner);
  await stack.gateways[owner]?.kill9();
  let more = (await spend(rest, 10)).admitted;
  await noticedGone(stack, killed, others);
  more += await exhaust(rest);
  assert.equal(more, 12);
  await restart(owner);
  assert.equal((await spend(apis, 9)).admitted, 0);
});

test("a gateway that hangs is replaced by shares of the limit, which count when it is dropped and when it is back", async () => {
  const api = await limitedTo(12);
  const { owner, others } = await placesOf(api);
  const apis = through(stack, api);
  const rest = others.map((index) => apis[index] as Api);
  stack.gateways[owner]?.signal("SIGSTOP");
  try {
    const shares = await Promise.all(rest.map((one) => spend([one], 6)));
    assert.deepEqual(
      shares.map(({ admitted }) => admitted),
      [4, 4],
    );
    await noticedGone(stack, gatewayId(stack, owner), others);
    assert.equal(await exhaust(rest), 4);
  } finally {
    stack.gateways[owner]?.signal("SIGCONT");
  }
  await until("the gateway to be back", async () => (await list(apis[owner] as Api)).status === 429);
  assert.equal((await spend(apis, 12)).admitted, 0);
});
