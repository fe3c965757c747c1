/** POST /v1/sandboxes/create and the shape of a sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts } from "../../helpers/accounts.ts";
import { collect } from "../../helpers/api.ts";
import { expectError, expectOk, expectSandbox } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
const account = await accounts.make();
const api = account.api;

const create = (body: unknown) => api.call("POST", "/v1/sandboxes/create", body);

test("a sandbox made with nothing but an image has the defaults of the API", async () => {
  const before = Date.now();
  const sandbox = expectOk(await create({ image: "default" }), 201);
  expectSandbox(sandbox);
  const { id, name, created_at, ...rest } = sandbox as { id: string; name: string; created_at: string };
  assert.deepEqual(rest, {
    status: "running",
    image: "default",
    cpu: 1,
    memory: 512,
    storage: 5,
    disk_size: 5,
    network: { access: "outbound" },
    isolation: "standard",
    memory_restored: false,
    memory_reason: null,
  });
  assert.match(name, /^sandbox-[0-9a-z]{4,}$/);
  assert.ok(Date.parse(created_at) >= before - 1_000 && Date.parse(created_at) <= Date.now() + 1_000);
  assert.deepEqual(expectOk(await api.call("GET", `/v1/sandboxes/${id}`)), sandbox, "get shows what create answered");
  await api.delete(id);
});

test("what a caller asks for is what the sandbox has", async () => {
  const sandbox = expectOk(
    await create({
      image: "default",
      name: "Full_name.1-x",
      resources: { cpus: 2, memory: 256, storage: 1 },
      env_vars: { GREETING: 'hällo "world" $HOME\n', _x1: "" },
      network: { access: "none" },
      wait_for_ready: true,
    }),
    201,
  );
  expectSandbox(sandbox);
  const { id, created_at, ...rest } = sandbox as { id: string; created_at: string };
  assert.deepEqual(rest, {
    name: "Full_name.1-x",
    status: "running",
    image: "default",
    cpu: 2,
    memory: 256,
    storage: 1,
    disk_size: 1,
    network: { access: "none" },
    isolation: "standard",
    memory_restored: false,
    memory_reason: null,
  });
  const { stdout } = await api.execute(id, 'printf "%s|" "$GREETING"; env | grep ^_x1=');
  assert.equal(stdout, 'hällo "world" $HOME\n|_x1=\n');
  await api.delete(id);
});

test("names need not be unique, ids are, and later ids sort later", async () => {
  const first = await api.create({ name: "twin" });
  const second = await api.create({ name: "twin" });
  assert.ok(first < second);
  await Promise.all([api.delete(first), api.delete(second)]);
});

test("with wait_for_ready false the answer comes at once, calls conflict while it is being created, and it gets ready", async () => {
  const body = { image: "default", resources: { cpus: 2 }, wait_for_ready: false };
  const start = async () => expectOk(await create(body), 201) as { id: string; status: string };
  // The pool holds none of the kind, and those before it are created first, so that it is not ready before the calls are there.
  const before = await Promise.all(Array.from({ length: 4 }, start));
  const sandbox = await start();
  expectSandbox(sandbox as never);
  assert.equal(sandbox.status, "creating");
  const path = `/v1/sandboxes/${sandbox.id}`;
  const [command, stream, upload, download, deletion] = await Promise.all([
    api.call("POST", `${path}/execute`, { command: "true" }),
    api.call("POST", `${path}/execute_async`, { command: "true" }),
    api.call("POST", `${path}/upload?path=/tmp/x`),
    api.call("GET", `${path}/download?path=/etc/passwd`),
    api.call("DELETE", `${path}/delete`),
  ]);
  for (const answer of [command, stream, upload, download, deletion]) expectError(answer as never, "conflict", /creat/);
  const list = expectOk(await api.call<{ data: { id: string }[] }>("GET", "/v1/sandboxes/list"));
  assert.ok(
    list.data.some(({ id }) => id === sandbox.id),
    "list shows sandboxes that are being created",
  );
  await until("the sandbox runs", async () => (await api.call("GET", path)).body.status === "running");
  assert.equal((await collect(await api.stream(sandbox.id, "echo ready"))).stdout, "ready\n");
  for (const { id } of [...before, sandbox])
    await until("it can be deleted", async () => (await api.call("DELETE", `/v1/sandboxes/${id}/delete`)).status === 200);
});

test("an image that cannot be had is unprocessable and leaves no sandbox", async () => {
  const answer = await create({ image: "localhost/no-such-image:latest", name: "no-image" });
  expectError(answer, "unprocessable", /image not found.*localhost\/no-such-image:latest/, "image_not_found");
  const { data } = (await api.call<{ data: { name: string }[] }>("GET", "/v1/sandboxes/list")).body;
  assert.ok(!data.some(({ name }) => name === "no-image"));
});

test("an image that cannot be had shows as state error where nobody waited, and that sandbox can be deleted", async () => {
  const { id } = expectOk(await create({ image: "localhost/no-such-image:latest", wait_for_ready: false }), 201) as { id: string };
  await until("the sandbox is in state error", async () => (await api.call("GET", `/v1/sandboxes/${id}`)).body.status === "error");
  const sandbox = expectOk(await api.call("GET", `/v1/sandboxes/${id}`));
  expectSandbox(sandbox);
  assert.match(sandbox.error as string, /image not found/);
  expectError(await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }), "conflict", /error/);
  const list = expectOk(await api.call<{ data: { id: string }[] }>("GET", "/v1/sandboxes/list"));
  assert.ok(!list.data.some((entry) => entry.id === id), "list shows running and creating ones only");
  expectOk(await api.call("DELETE", `/v1/sandboxes/${id}/delete`));
  expectError(await api.call("GET", `/v1/sandboxes/${id}`), "not_found");
});

const noImages: [string, string, RegExp][] = [
  ["nothing", "", /it is empty$/],
  ["what reads as an option", "--privileged", /its path must consist of/],
  ["a transport and a path", "oci:/etc", /before its first \//],
  ["a path with a space", "dir:/etc passwd", /before its first \//],
  ["255 letters", "a".repeat(255), /its path has more than 255 characters$/],
  ["a line break behind a good name", "default\n", /in "default\\n" its path must consist of/],
  ["upper case", "Default", /its path must consist of/],
];
for (const [what, image, why] of noImages) {
  test(`an image that is ${what} cannot be meant, and the answer says why`, async () => {
    const message = expectError(await create({ image }), "unprocessable", why);
    assert.match(message, /^image must be the name of a container image, such as "default" or "docker\.io\/library\/alpine:3"; in "/);
    expectError(await create({ image, wait_for_ready: false }), "unprocessable", message);
  });
}

const refused: [string, unknown, RegExp][] = [
  ["no image", {}, /^Missing required field: image$/],
  ["an image that is null", { image: null }, /^image must be the name of a container image/],
  ["an image that is a number", { image: 7 }, /^image must be/],
  ["a name with a space", { image: "default", name: "a b" }, /^name must be 1 to 63 characters/],
  ["an empty name", { image: "default", name: "" }, /^name must be 1 to 63/],
  ["a name that begins with a dash", { image: "default", name: "-a" }, /^name must be/],
  ["a name of 64 characters", { image: "default", name: "a".repeat(64) }, /^name must be 1 to 63/],
  ["a name with a line end", { image: "default", name: "a\n" }, /^name must be/],
  ["a name that is a number", { image: "default", name: 5 }, /^name must be/],
  ["no CPU", { image: "default", resources: { cpus: 0 } }, /^resources\.cpus must be between 1 and 32/],
  ["33 CPUs", { image: "default", resources: { cpus: 33 } }, /^resources\.cpus must be between 1 and 32/],
  ["half a CPU", { image: "default", resources: { cpus: 1.5 } }, /^resources\.cpus must be between 1 and 32/],
  ["CPUs as text", { image: "default", resources: { cpus: "2" } }, /^resources\.cpus must be between 1 and 32/],
  ["CPUs null", { image: "default", resources: { cpus: null } }, /^resources\.cpus must be between 1 and 32/],
  ["too little memory", { image: "default", resources: { memory: 127 } }, /^resources\.memory must be between 128 and 32768/],
  ["too much memory", { image: "default", resources: { memory: 32_769 } }, /^resources\.memory must be between 128 and 32768/],
  ["no storage", { image: "default", resources: { storage: 0 } }, /^resources\.storage must be between 1 and 1000/],
  ["too much storage", { image: "default", resources: { storage: 1_001 } }, /^resources\.storage must be between 1 and 1000/],
  ["resources that are a list", { image: "default", resources: [] }, /^resources must be an object$/],
  ["resources null", { image: "default", resources: null }, /^resources must be an object$/],
  ["env_vars that are a list", { image: "default", env_vars: ["A=1"] }, /^env_vars must be/],
  ["a variable that is a number", { image: "default", env_vars: { A: 1 } }, /^env_vars\.A must be a string/],
  ["a variable with NUL", { image: "default", env_vars: { A: "x\0y" } }, /^env_vars\.A must be a string without NUL/],
  ["a variable that is too long", { image: "default", env_vars: { A: "x".repeat(65_537) } }, /^env_vars\.A must be .*65536/],
  ["a variable's name with =", { image: "default", env_vars: { "A=B": "x" } }, /^env_vars.*name/],
  ["an empty variable name", { image: "default", env_vars: { "": "x" } }, /^env_vars.*name/],
  ["an unknown kind of network", { image: "default", network: { access: "host" } }, /^network\.access must be "none" or "outbound"$/],
  ["a network without access", { image: "default", network: {} }, /^Missing required field: network\.access$/],
  ["a network that is text", { image: "default", network: "none" }, /^network must be an object$/],
  ["wait_for_ready as text", { image: "default", wait_for_ready: "yes" }, /^wait_for_ready must be true or false$/],
];
for (const [what, body, message] of refused) {
  test(`${what} is refused with the name of the field`, async () => void expectError(await create(body), "invalid_request", message));
}

test("the bounds themselves are taken", async () => {
  const answers = await Promise.all([
    create({ image: "default", name: "a".repeat(63), resources: { memory: 128, storage: 1 } }),
    create({ image: "default", name: "Z", resources: { storage: 1_000, cpus: 1 }, env_vars: { A: "x".repeat(65_536) } }),
  ]);
  for (const answer of answers) {
    expectSandbox(expectOk(answer, 201));
    await api.delete(answer.body.id as string);
  }
});
