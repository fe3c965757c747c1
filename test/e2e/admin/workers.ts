/** Workers: cordoning them, and forgetting one that is gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import type { AdminWorld, PageOf } from "./world.ts";

interface WorkerView {
  readonly id: string;
  readonly present: boolean;
  readonly cordoned?: boolean;
  readonly draining?: boolean;
  readonly sandboxes: number;
  readonly sandboxes_max?: number;
  readonly not_enforced?: readonly string[];
}

export function workerTests(world: AdminWorld): void {
  const list = async (gateway = 0) => expectOk(await world.operator(gateway).call<{ data: WorkerView[] }>("GET", "/v1/admin/workers")).data;
  const drain = (id: string, body?: object) => world.operator().call("POST", `/v1/admin/workers/${id}/drain`, body);
  const find = async (id: string) => (await list()).find((worker) => worker.id === id);
  const placeOf = async (api: Api, accountId: string): Promise<string> => {
    const sandbox = await api.create();
    const { data } = (await world.operator().call<PageOf<{ id: string; worker_id: string }>>("GET", `/v1/admin/sandboxes?account_id=${accountId}`)).body;
    return data.find(({ id }) => id === sandbox)?.worker_id ?? "";
  };

  test("a drained worker gets no new sandboxes until that is undone; the other does", async () => {
    const member = await world.member();
    const api = new Api({ url: world.stack.url, apiKey: (await member.makeKey()).key });
    const [first, second] = await list();
    assert.ok(first && second);
    for (const { present, cordoned, draining, sandboxes_max, not_enforced } of [first, second]) {
      assert.deepEqual([present, cordoned, draining], [true, false, false]);
      assert.ok(sandboxes_max && Array.isArray(not_enforced));
    }
    const { message, ...rest } = expectOk(await drain(first.id));
    assert.deepEqual(rest, { id: first.id, cordoned: true });
    assert.equal(typeof message, "string");
    await until("it is seen on both gateways", async () =>
      (await Promise.all([list(0), list(1)])).every((seen) => seen.find(({ id }) => id === first.id)?.cordoned),
    );
    for (let made = 0; made < 3; made++) assert.equal(await placeOf(api, member.id), second.id);
    assert.equal(expectOk(await drain(first.id, { on: false })).cordoned, false);
    await until("it is undone", async () => (await find(first.id))?.cordoned === false);
    expectOk(await drain(second.id, { on: true }));
    await until("the other is drained", async () => (await find(second.id))?.cordoned);
    assert.equal(await placeOf(api, member.id), first.id);
    expectOk(await drain(second.id, { on: false }));
    expectError(await drain(first.id, { on: "yes" }), "invalid_request", /^on must be true or false$/);
    for (const unknown of ["none", "*", "a.b", ">"]) expectError(await drain(unknown), "not_found", `Worker not found: ${unknown}`);
    expectOk(await api.call("DELETE", "/v1/sandboxes/delete-all"));
  });

  test("a worker that is gone can be forgotten, which frees the places of its sandboxes; one that is there cannot", async () => {
    const member = await world.member();
    const { key } = await member.makeKey();
    expectOk(await world.operator().call("POST", `/v1/admin/accounts/${member.id}`, { limits: { sandboxes: 1 } }));
    const api = new Api({ url: world.stack.url, apiKey: key });
    await until(
      "the new limit",
      async () => (await api.call<{ account: { limits: { sandboxes: number } } }>("GET", "/v1/account")).body.account.limits.sandboxes === 1,
    );
    const [lost] = world.stack.workers;
    const lostId = lost?.spec.env.SANDGATE_WORKER_ID ?? "";
    for (const { id } of await list()) await drain(id, { on: id !== lostId });
    await until("only one takes sandboxes", async () => (await list()).every(({ id, cordoned }) => cordoned === (id !== lostId)));
    assert.equal(await placeOf(api, member.id), lostId);
    expectError(await world.operator().call("DELETE", `/v1/admin/workers/${lostId}`), "conflict", /^This worker is there/);
    await lost?.kill9();
    await until("it is gone for both gateways", async () =>
      (await Promise.all([list(0), list(1)])).every((seen) => seen.find(({ id }) => id === lostId)?.present === false),
    );
    assert.deepEqual(await find(lostId), { id: lostId, present: false, sandboxes: 1 });
    for (const { id, present } of await list()) if (present) expectOk(await drain(id, { on: false }));
    expectError(await drain(lostId), "not_found");
    expectError(await api.call("POST", "/v1/sandboxes/create", { image: "default" }), "sandbox_limit_reached");
    const forgotten = expectOk(await world.operator(1).call("DELETE", `/v1/admin/workers/${lostId}`));
    assert.deepEqual(forgotten, { id: lostId, message: "Worker forgotten", forgotten_sandboxes: 1 });
    await until("the place is free", async () => (await api.call("POST", "/v1/sandboxes/create", { image: "default" })).status === 201);
    assert.equal(await find(lostId), undefined);
    expectError(await world.operator().call("DELETE", `/v1/admin/workers/${lostId}`), "not_found");
    expectOk(await api.call("DELETE", "/v1/sandboxes/delete-all"));
  });
}
