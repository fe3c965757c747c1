/** The answers of a running gateway match openapi.json: every call is made once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { subprotocol } from "../../../shared/stream/session/protocol.ts";
import { newId } from "../../../shared/util/ids.ts";
import { atEnd } from "../../helpers/fixture.ts";
import { type Member, newcomer, signUp } from "../../helpers/members.ts";
import { importedImage } from "../../helpers/own-store.ts";
import { Comparison } from "../../helpers/reference.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url, apiKey } = sharedStack();
const comparison = new Comparison();

type Headers = Record<string, string>;
const json = { "content-type": "application/json" };

/** Makes a call and compares its answer with the document. */
async function call<T>(method: string, path: string, body?: unknown, headers: Headers = { "x-api-key": key }): Promise<T> {
  const text = body === undefined || body instanceof FormData ? body : JSON.stringify(body);
  const type = body === undefined || body instanceof FormData ? {} : json;
  const answer = await fetch(url + path, { method, headers: { ...type, ...headers }, ...(text === undefined ? {} : { body: text }) });
  return (await comparison.expectDocumented(method, path, answer)) as T;
}

const asOperator: Headers = { "x-api-key": apiKey };
const asBrowser = (): Headers => member.headers;

let member: Member = await signUp(url);
const made = await call<{ id: string; key: string }>("POST", "/v1/account/keys", { name: "reference" }, asBrowser());
const key = made.key;
const keyId = made.id;
const sandbox = (await call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" })).id;
atEnd(() => call("DELETE", "/v1/sandboxes/delete-all"));

test("sandboxes, executions and files", async () => {
  await call("GET", "/v1/sandboxes/list?page_size=5");
  await call("GET", `/v1/sandboxes/${sandbox}`);
  await call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: "echo out; echo err >&2; exit 3" });
  await call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: "sleep 60", timeout: 1 });
  const lines = await call<string>("POST", `/v1/sandboxes/${sandbox}/execute_async`, { command: "echo out; echo err >&2" });
  assert.match(lines, /\{"exit_code":0\}\n$/);
  const form = new FormData();
  form.set("path", "/work/data.csv");
  form.set("file", new Blob(["day,total\n"]));
  await call("POST", `/v1/sandboxes/${sandbox}/upload`, form);
  assert.equal(await call("GET", `/v1/sandboxes/${sandbox}/download?path=/work/data.csv`), "day,total\n");
  await call("GET", `/v1/sandboxes/${sandbox}/stat?path=/work/data.csv`);
  await call("GET", `/v1/sandboxes/find?name=${sandbox}`);
  await call("GET", `/v1/sandboxes/${sandbox}/status`);
  const { logs } = await call<{ logs: unknown[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${sandbox}`);
  assert.ok(logs.length >= 3);
});

test("live sessions", async () => {
  const { token } = await call<{ token: string }>("POST", `/v1/sandboxes/${sandbox}/session-token`, {});
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/sandboxes/${sandbox}/session?token=${token}`, [subprotocol]);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  const started = new Promise<{ type: string }>((resolve) => {
    socket.addEventListener("message", ({ data }) => typeof data === "string" && resolve(JSON.parse(data)));
  });
  socket.send(JSON.stringify({ type: "start" }));
  assert.equal((await started).type, "started");
  const { data } = await call<{ data: unknown[] }>("GET", `/v1/sandboxes/${sandbox}/sessions`);
  assert.equal(data.length, 1);
  socket.close();
  // Without the upgrade.
  await call("GET", `/v1/sandboxes/${sandbox}/session`);
});

test("snapshots", async () => {
  const { id } = await call<{ id: string }>("POST", `/v1/sandboxes/${sandbox}/snapshot`, { name: "reference" });
  await call("GET", `/v1/snapshots/${id}`);
  await call("GET", "/v1/snapshots/list");
  const restored = await call<{ id: string }>("POST", `/v1/snapshots/${id}/restore`, {});
  const clone = await call<{ sandbox: { id: string } }>("POST", `/v1/sandboxes/${restored.id}/clone`, {});
  await call("DELETE", `/v1/sandboxes/${clone.sandbox.id}/delete`);
  await call("POST", `/v1/sandboxes/${restored.id}/fork`, { count: 2 });
  await call("DELETE", `/v1/sandboxes/${restored.id}/delete`, { create_snapshot: true });
  await call("DELETE", `/v1/snapshots/${id}`);
  await call("DELETE", "/v1/snapshots/delete-all");
});

test("accounts", async () => {
  await call("GET", "/v1/auth/settings", undefined, {});
  const { email, password } = newcomer();
  const session = await fetch(`${url}/v1/auth/signup`, { method: "POST", headers: json, body: JSON.stringify({ email, password }) });
  await comparison.expectDocumented("POST", "/v1/auth/signup", session);
  await call("POST", "/v1/auth/login", { email, password }, {});
  await call("GET", "/v1/account");
  await call("GET", "/v1/account", undefined, asBrowser());
  await call("GET", "/v1/account/keys");
  await call("GET", "/v1/account/usage");
  const spare = await call<{ id: string }>("POST", "/v1/account/keys", {}, asBrowser());
  await call("DELETE", `/v1/account/keys/${spare.id}`, undefined, asBrowser());
});

test("the operator's calls", async () => {
  await call("GET", "/v1/admin/accounts", undefined, asOperator);
  const { accountId } = member;
  const { email } = newcomer();
  await call("POST", "/v1/admin/accounts", { email, limits: { sandboxes: 12 } }, asOperator);
  await call("POST", "/v1/admin/accounts", { email }, asOperator);
  await call("GET", `/v1/admin/accounts/${accountId}`, undefined, asOperator);
  await call("POST", `/v1/admin/accounts/${accountId}`, { limits: { sandboxes: 12 } }, asOperator);
  await call("GET", `/v1/admin/keys?account_id=${accountId}`, undefined, asOperator);
  await call("POST", `/v1/admin/keys/${keyId}`, { tier: "pro", limits: { burst: 100 } }, asOperator);
  const spare = await call<{ id: string }>("POST", "/v1/account/keys", {}, asBrowser());
  await call("DELETE", `/v1/admin/keys/${spare.id}`, undefined, asOperator);
  const { data } = await call<{ data: { id: string; present: boolean }[] }>("GET", "/v1/admin/workers", undefined, asOperator);
  const worker = data.find(({ present }) => present)?.id ?? "";
  await call("POST", `/v1/admin/workers/${worker}/drain`, { on: false }, asOperator);
  await call("GET", `/v1/admin/sandboxes?account_id=${accountId}`, undefined, asOperator);
  await call("GET", "/v1/admin/audit", undefined, asOperator);
  await call("GET", `/v1/admin/images?worker_id=${worker}`, undefined, asOperator);
  await call("DELETE", `/v1/admin/images/${await importedImage()}`, undefined, asOperator);
  const { id } = await call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
  await call("DELETE", `/v1/admin/sandboxes/${id}`, undefined, asOperator);
  const leaving = await signUp(url);
  await call("POST", `/v1/admin/accounts/${leaving.accountId}/password`, {}, asOperator);
  await call("DELETE", `/v1/admin/accounts/${leaving.accountId}`, undefined, asOperator);
});

test("whether it works, and the reference", async () => {
  await call("GET", "/healthz", undefined, {});
  await call("GET", "/readyz", undefined, {});
  const document = await call<{ openapi: string; paths: object }>("GET", "/openapi.json", undefined, {});
  assert.equal(document.openapi, "3.1.0");
  const answer = await fetch(`${url}/docs`);
  assert.match(answer.headers.get("content-security-policy") ?? "", /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.match(String(await comparison.expectDocumented("GET", "/docs", answer)), /^<!doctype html>/);
});

test("errors", async () => {
  const nobody = { "x-api-key": "sg_nobody" };
  await call("GET", "/v1/sandboxes/list", undefined, nobody);
  await call("GET", "/v1/sandboxes/list?page_size=1000");
  await call("GET", "/v1/admin/accounts");
  await call("POST", "/v1/account/keys", { name: "with a key" });
  await call("GET", `/v1/sandboxes/${newId("sandbox")}`);
  await call("DELETE", `/v1/snapshots/${newId("snapshot")}`);
  await call("POST", "/v1/sandboxes/create", {});
  await call("POST", "/v1/sandboxes/create", { image: "localhost/there-is/no-such:image" });
  await call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: "pwd", working_dir: "/missing" });
  await call("GET", `/v1/sandboxes/${sandbox}/download?path=/missing`);
  await call("GET", `/v1/sandboxes/${sandbox}/download?path=/etc`);
  await call("POST", `/v1/sandboxes/${sandbox}/upload`, new FormData());
  await call("POST", "/v1/auth/login", { email: member.email, password: "not this one" }, {});
  await call("DELETE", `/v1/account/keys/${newId("key")}`, undefined, asBrowser());
  await call("GET", `/v1/admin/accounts/${newId("account")}`, undefined, asOperator);
  await call("DELETE", "/v1/admin/workers/nobody", undefined, asOperator);
  await call("DELETE", `/v1/admin/images/${"0".repeat(64)}`, undefined, asOperator);
});

test("what ends things, and that nothing was forgotten", async () => {
  await call("DELETE", "/v1/sandboxes/delete-all");
  const changed = await call<{ csrf_token: string }>(
    "POST",
    "/v1/account/password",
    { current_password: member.password, new_password: `${member.password} too` },
    asBrowser(),
  );
  assert.ok(changed.csrf_token);
  // That session has ended with the old password.
  member = await signUp(url);
  await call("POST", "/v1/auth/logout", {}, asBrowser());
  // Only a worker that is gone can be forgotten; the tests of the operator's calls have one. Those of moves have a second one.
  assert.deepEqual(comparison.forgotten, ["adminForgetWorker", "adminMoveSandbox"]);
});
