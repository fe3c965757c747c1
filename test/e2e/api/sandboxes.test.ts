/** list, get, delete and delete-all. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { collect } from "../../helpers/api.ts";
import { expectError, expectOk, expectSandbox } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { missingImage } from "../../helpers/stack.ts";

interface Page {
  readonly data: { readonly id: string; readonly name: string }[];
  readonly pagination: Record<string, number>;
}

const accounts = await fixture(Accounts.open(sharedStack()));
const account = await accounts.make();
const api = account.api;
const ids: string[] = [];
for (const name of ["one", "two", "three"]) ids.push(await api.create({ name }));
const newestFirst = ids.reverse();

const list = async (query = "") => expectOk(await api.call<Page>("GET", `/v1/sandboxes/list${query}`));

test("list shows the caller's sandboxes, newest first, with the whole shape of each", async () => {
  const { data, pagination } = await list();
  assert.deepEqual(
    data.map(({ id }) => id),
    newestFirst,
  );
  for (const sandbox of data) expectSandbox(sandbox as never);
  assert.deepEqual(pagination, { page: 1, page_size: 20, total_items: 3, total_pages: 1 });
});

test("pages are cut by page and page_size and say how many there are", async () => {
  const first = await list("?page_size=2");
  assert.deepEqual(first.pagination, { page: 1, page_size: 2, total_items: 3, total_pages: 2 });
  const second = await list("?page=2&page_size=2");
  assert.deepEqual(second.pagination, { page: 2, page_size: 2, total_items: 3, total_pages: 2 });
  assert.deepEqual(
    [...first.data, ...second.data].map(({ id }) => id),
    newestFirst,
  );
});

test("a page past the last is empty and tells the same totals", async () => {
  assert.deepEqual(await list("?page=9&page_size=100"), { data: [], pagination: { page: 9, page_size: 100, total_items: 3, total_pages: 1 } });
});

test("an account without sandboxes has an empty list without pages", async () => {
  const { api: empty } = await accounts.make("empty");
  assert.deepEqual((await empty.call("GET", "/v1/sandboxes/list")).body, { data: [], pagination: { page: 1, page_size: 20, total_items: 0, total_pages: 0 } });
  assert.deepEqual((await empty.call("DELETE", "/v1/sandboxes/delete-all")).body, { deleted_count: 0, deleted_ids: [], message: "0 sandboxes deleted" });
});

for (const [query, message] of [
  ["page=0", /^page must be a whole number from 1$/],
  ["page=-1", /^page must be/],
  ["page=x", /^page must be/],
  ["page=", /^page must be/],
  ["page=1.5", /^page must be/],
  ["page=1e2", /^page must be/],
  ["page=99999999999999999999", /^page must be/],
  ["page_size=0", /^page_size must be between 1 and 100/],
  ["page_size=101", /^page_size must be between 1 and 100/],
  ["page_size=ten", /^page_size must be between 1 and 100/],
] as const) {
  test(`list refuses ${query}`, async () => void expectError(await api.call("GET", `/v1/sandboxes/list?${query}`), "invalid_request", message));
}

test("an id without a sandbox is not found, whatever its form", async () => {
  const ids = [newId("sandbox"), "sb_", "nonsense", "exec_01k9zzzzzzzzzzzzzzzzzzzzzz", "%00", "%ff", "sb_*", "a".repeat(2_000), "sb_%F0%9F%92%A3"];
  for (const id of ids) {
    for (const [method, suffix, body] of [
      ["GET", "", undefined],
      ["DELETE", "/delete", undefined],
      ["GET", "/status", undefined],
      ["POST", "/execute", { command: "true" }],
      ["POST", "/execute_async", { command: "true" }],
      ["POST", "/upload?path=/x", undefined],
      ["GET", "/download?path=/x", undefined],
    ] as const) {
      const message = expectError(await api.call(method, `/v1/sandboxes/${id}${suffix}`, body), "not_found", /^Sandbox not found: /);
      assert.ok(message.length < 200, "a long id is not repeated whole");
    }
  }
});

test("delete answers with the id, ends running commands, and a second delete is not found", async () => {
  const id = await api.create({ name: "short-lived" });
  const running = await api.stream(id, "echo started; sleep 300");
  const answer = await api.call("DELETE", `/v1/sandboxes/${id}/delete`, { create_snapshot: false });
  assert.deepEqual(expectOk(answer), { id, message: "Sandbox deleted", storage_deleted: true });
  const { last } = await collect(running);
  assert.ok(last?.error && last.code && last.exit_code === undefined, JSON.stringify(last));
  const again = await api.call("DELETE", `/v1/sandboxes/${id}/delete`);
  expectError(again, "not_found", `Sandbox not found: ${id}`);
  expectError(await api.call("GET", `/v1/sandboxes/${id}`), "not_found");
  assert.ok(!(await list()).data.some((sandbox) => sandbox.id === id));
});

test("deletes at the same time: one succeeds, the others find nothing", async () => {
  const id = await api.create();
  const answers = await Promise.all(Array.from({ length: 4 }, () => api.call("DELETE", `/v1/sandboxes/${id}/delete`)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404]);
});

test("delete checks the fields that it knows", async () => {
  const path = `/v1/sandboxes/${newestFirst[0]}/delete`;
  expectError(await api.call("DELETE", path, { create_snapshot: "yes" }), "invalid_request", /^create_snapshot must be true or false$/);
  expectError(await api.call("DELETE", path, { snapshot_name: "a b" }), "invalid_request", /^snapshot_name must be 1 to 63/);
  expectOk(await api.call("GET", `/v1/sandboxes/${newestFirst[0]}`));
});

test("delete-all ends all sandboxes of the caller, also the failed ones, and nobody else's", async () => {
  const other = await accounts.make("other");
  const foreign = await other.api.create();
  const { id: failed } = (await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: missingImage, wait_for_ready: false })).body;
  const expected = new Set([...newestFirst, failed]);
  const answer = expectOk(
    await api.call<{ deleted_count: number; deleted_ids: string[]; message: string; errors?: { id: string; error: string }[] }>(
      "DELETE",
      "/v1/sandboxes/delete-all",
    ),
  );
  // The failing one may have been in the making still, which the answer then says.
  const told = [...answer.deleted_ids, ...(answer.errors ?? []).map(({ id }) => id)];
  assert.deepEqual(new Set(told), expected);
  assert.equal(answer.deleted_count, answer.deleted_ids.length);
  assert.equal(answer.message, `${answer.deleted_count} sandboxes deleted`);
  for (const { id, error } of answer.errors ?? []) assert.ok(id === failed && /creat/.test(error), error);
  for (const id of newestFirst) expectError(await api.call("GET", `/v1/sandboxes/${id}`), "not_found");
  expectOk(await other.api.call("GET", `/v1/sandboxes/${foreign}`));
  assert.equal((await other.api.execute(foreign, "echo alive")).stdout, "alive\n");
});
