/** Transfers that break off: the old file stays, and nothing is left behind. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { download, processes, sender, sha256, untilNothingIsLeft, uploadRaw } from "../../helpers/files.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const MiB = 1024 * 1024;

const id = await api.create({ name: "interrupted" });
atEnd(() => api.delete(id));

const run = async (command: string): Promise<string> => (await api.execute(id, command)).stdout;

async function request(method: string, path: string, headers: Record<string, string> = {}): Promise<Connection> {
  const connection = await fixture(Connection.open(api.url));
  return connection.request(method, `/v1/sandboxes/${id}${path}`, { "x-api-key": api.apiKey, ...headers });
}

const runs = (name: string) => until(`${name} runs in the sandbox`, async () => (await processes(api, id)).includes(name));

const multipart = { "content-type": "multipart/form-data; boundary=b", "content-length": String(8 * MiB) };
const head = '--b\r\ncontent-disposition: form-data; name="path"\r\n\r\n/root/kept\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n';

for (const [what, query, headers, start] of [
  ["a raw body", "?path=/root/kept", { "content-type": "application/octet-stream", "content-length": String(8 * MiB) }, ""],
  ["a chunked body", "?path=/root/kept", { "transfer-encoding": "chunked" }, "400000\r\n"],
  ["a multipart body", "", multipart, head],
] as [string, string, Record<string, string>, string][]) {
  test(`${what} that breaks off leaves the old file, no temporary file and no process`, async () => {
    await run("echo old > /root/kept");
    const wire = await request("POST", `/upload${query}`, headers);
    wire.send(start).send(randomBytes(MiB));
    await runs("cat");
    wire.cut();
    await untilNothingIsLeft(api, id, "/root");
    assert.equal(await run("cat /root/kept"), "old\n");
  });
}

test("an upload that stalls for good is cut off and leaves nothing, while others go on", async () => {
  await run("echo old > /root/kept");
  const wire = await request("POST", "/upload?path=/root/kept", { "content-length": "1000" });
  wire.send("a few bytes");
  await runs("cat");
  expectOk(await uploadRaw(api, id, "/root/other", "x"));
  await wire.closed();
  await untilNothingIsLeft(api, id, "/root");
  assert.equal(await run("cat /root/kept"), "old\n");
});

test("an upload that comes byte by byte arrives whole", async () => {
  const text = "slowly does it";
  const wire = await request("POST", "/upload?path=/root/slow", { "content-length": String(text.length) });
  await runs("cat");
  for (const char of text) {
    wire.send(char);
    await api.call("GET", "/healthz");
  }
  assert.equal(expectOk(await wire.answer()).size, text.length);
  assert.equal(await run("cat /root/slow"), text);
});

test("a download whose client reads nothing waits, and ends with it", async () => {
  await run("head -c 64M /dev/urandom > /root/large");
  const wire = await request("GET", "/download?path=/root/large");
  wire.pause();
  await runs(sender);
  assert.ok((await processes(api, id)).includes(sender), "the whole file was read though nobody took it");
  wire.cut();
  await untilNothingIsLeft(api, id);
});

test("a tar whose client goes away leaves no process", async () => {
  const controller = new AbortController();
  const response = await api.raw("GET", `/v1/sandboxes/${id}/download?path=/usr&archive=tar`, undefined, {}, controller.signal);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  controller.abort();
  await untilNothingIsLeft(api, id);
});

test("clients that go away at any moment leave no process and no file", async () => {
  await run("head -c 4M /dev/urandom > /root/large");
  for (let round = 0; round < 24; round++) {
    const [down, up] = await Promise.all([
      request("GET", "/download?path=/root/large"),
      request("POST", "/upload?path=/root/up", { "content-length": String(8 * MiB) }),
    ]);
    down.pause();
    up.send(Buffer.alloc(MiB));
    // Each round waits a little longer: before, while and after the programs start.
    for (let step = 0; step < round; step++) await api.call("GET", "/healthz");
    down.cut();
    up.cut();
  }
  await untilNothingIsLeft(api, id, "/root");
  assert.equal(await run("ls /root/up 2>/dev/null"), "");
});

test("a file that grows or shrinks while it is read never comes as a wrong whole", async () => {
  await run("head -c 32M /dev/zero > /root/growing");
  const growing = await api.stream(id, "echo begun; while :; do echo more >> /root/growing; done");
  const { status, headers, body } = await download(api, id, "/root/growing");
  assert.equal(status, 200);
  assert.equal(body.length, Number(headers.get("content-length")));
  await growing.body?.cancel();
  const wire = await request("GET", "/download?path=/root/growing");
  wire.pause();
  await runs(sender);
  await run(": > /root/growing");
  wire.resume();
  await wire.closed();
  assert.ok(wire.receivedBytes < 32 * MiB);
  await untilNothingIsLeft(api, id);
});

test("downloads of a file that is being replaced are each one version of it", async () => {
  const versions = [randomBytes(MiB), randomBytes(2 * MiB)];
  const sums = versions.map(sha256);
  await uploadRaw(api, id, "/root/replaced", versions[0] as Buffer);
  const uploads = (async () => {
    for (let round = 0; round < 10; round++) expectOk(await uploadRaw(api, id, "/root/replaced", versions[round % 2] as Buffer));
  })();
  for (let round = 0; round < 10; round++) {
    const { status, body } = await download(api, id, "/root/replaced");
    assert.equal(status, 200);
    assert.ok(sums.includes(sha256(body)), `round ${round}: ${body.length} bytes are no version`);
  }
  await uploads;
});

test("uploads to one path at the same time leave one of them, whole", async () => {
  const versions = Array.from({ length: 6 }, () => randomBytes(MiB));
  for (const answer of await Promise.all(versions.map((bytes) => uploadRaw(api, id, "/root/contended", bytes)))) expectOk(answer);
  assert.ok(versions.map(sha256).includes(sha256((await download(api, id, "/root/contended")).body)));
  await untilNothingIsLeft(api, id, "/root");
});

test("deleting the sandbox ends its transfers", async () => {
  const doomed = await api.create();
  const wire = await fixture(Connection.open(api.url));
  wire.request("POST", `/v1/sandboxes/${doomed}/upload?path=/root/x`, { "x-api-key": api.apiKey, "content-length": "1000" }).send("begun");
  await until("the upload has begun", async () => (await processes(api, doomed)).includes("cat"));
  await api.delete(doomed);
  const answer = await wire.answer();
  assert.ok(answer.status >= 400, String(answer.status));
});
