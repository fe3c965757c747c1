/** Sandboxes of all accounts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import { type AdminWorld, newestOf, type PageOf } from "./world.ts";

interface SandboxView {
  readonly id: string;
  readonly account_id: string;
  readonly key_id: string;
  readonly worker_id: string;
  readonly error: string | null;
}

export function adminSandboxTests(world: AdminWorld): void {
  const list = async (query = "", gateway = 0) => expectOk(await world.operator(gateway).call<PageOf<SandboxView>>("GET", `/v1/admin/sandboxes${query}`));

  test("sandboxes of all accounts are listed with whose they are and where, and any can be deleted", async () => {
    const members = [await world.member(), await world.member()];
    const made: { id: string; keyId: string; api: Api; accountId: string }[] = [];
    for (const member of members) {
      const { id: keyId, key } = await member.makeKey();
      const api = new Api({ url: world.stack.url, apiKey: key });
      made.push({ id: await api.create(), keyId, api, accountId: member.id });
    }
    for (const gateway of [0, 1]) {
      const { data } = await until("both are known", async () => {
        const page = await list("", gateway);
        return made.every(({ id }) => page.data.some((sandbox) => sandbox.id === id)) && page;
      });
      assert.deepEqual(newestOf(data, 2), made.map(({ id }) => id).reverse());
    }
    for (const { id, keyId, accountId } of made) {
      const { data } = await list(`?account_id=${accountId}`);
      assert.deepEqual(
        data.map(({ id, key_id, account_id, error }) => ({ id, key_id, account_id, error })),
        [{ id, key_id: keyId, account_id: accountId, error: null }],
      );
      const workerId = data[0]?.worker_id ?? "";
      assert.ok((await list(`?worker_id=${workerId}`)).data.some((sandbox) => sandbox.id === id));
      assert.deepEqual((await list(`?worker_id=none&account_id=${accountId}`)).data, []);
    }
    for (const { id, accountId, api } of made) {
      const remove = () => world.operator(1).call("DELETE", `/v1/admin/sandboxes/${id}`);
      assert.deepEqual(expectOk(await remove()), { id, account_id: accountId, message: "Sandbox deleted", storage_deleted: true });
      expectError(await remove(), "not_found", `Sandbox not found: ${id}`);
      await until("its owner knows", async () => (await api.call("GET", `/v1/sandboxes/${id}`)).status === 404);
    }
    expectError(await world.operator().call("DELETE", `/v1/admin/sandboxes/${newId("sandbox")}`), "not_found");
  });
}
