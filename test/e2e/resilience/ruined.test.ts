/** A sandbox whose own programs were removed says so, whatever it is asked for that needs them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const octets = { "content-type": "application/octet-stream" };
/** More than the exec server takes itself. */
const large = 70_000;

const parsed = async (response: Response): Promise<{ status: number; body: unknown }> => ({ status: response.status, body: await response.json() });

test("after `rm -rf /*` the error of every call that needs a program names the cause, and small files still come and go", async () => {
  const id = await sandboxes.make();
  await api.execute(id, "rm -rf --no-preserve-root /* 2>/dev/null");
  const command = { command: "echo here", working_dir: "/" };
  const raw = async (path: string, text: string) => parsed(await api.raw("POST", `/v1/sandboxes/${id}/upload?path=${path}`, text, octets));
  const calls = {
    execute: await api.call("POST", `/v1/sandboxes/${id}/execute`, command),
    stream: await api.call("POST", `/v1/sandboxes/${id}/execute_async`, command),
    download: await api.call("GET", `/v1/sandboxes/${id}/download?path=/&archive=tar`),
    upload: await raw("/root/file", "x".repeat(large)),
  };
  for (const [name, { body }] of Object.entries(calls)) assert.match(JSON.stringify(body), /the sandbox has no \/bin\/sh/, name);
  assert.deepEqual([calls.download.status, calls.upload.status], [422, 422]);
  const elsewhere = await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "echo here" });
  assert.equal(elsewhere.status, 422);
  assert.match(JSON.stringify(elsewhere.body), /working directory .* is not there any more/);
  // Small files need no program of the sandbox.
  expectError(await api.call("GET", `/v1/sandboxes/${id}/download?path=/etc/passwd`), "not_found", "File not found: /etc/passwd");
  assert.equal((await raw("/root/small", "text")).status, 200);
  assert.equal(await (await api.raw("GET", `/v1/sandboxes/${id}/download?path=/root/small`)).text(), "text");
  assert.equal((await api.call("DELETE", `/v1/sandboxes/${id}/delete`)).status, 200);
});

test("a download of a file that the kernel makes up brings its bytes", async () => {
  const id = await sandboxes.make();
  for (const path of ["/proc/version", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"]) {
    const response = await api.raw("GET", `/v1/sandboxes/${id}/download?path=${path}`);
    const text = await response.text();
    assert.equal(response.status, 200, `${path}: ${text}`);
    assert.match(text, /Linux version|Name:|never/);
  }
});
