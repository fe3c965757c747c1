/** Gateways that are killed, come before their time, or are two. */
import assert from "node:assert/strict";
import { hash, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, renameSync } from "node:fs";
import { Agent, get, type IncomingMessage } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import WebSocket from "ws";
import { subprotocol } from "../../../shared/stream/session/protocol.ts";
import { run } from "../../../systemd/base/run.ts";
import { Api, collect } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Connection } from "../../helpers/raw-http.ts";
import {
  assertAgreement,
  assertExplicitEnd,
  listOf,
  plain,
  runsIn,
  startEndlessUpload,
  startMarked,
  temporaryFiles,
  usable,
  withSettings,
} from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const silentMs = 2_000;
const leaveMs = 5_000;

const stack = await fixture(startStack({ name: "killed-gateway", gateways: 2, settings: plain }));
const api = new Api(stack);
const other = new Api({ url: stack.urls[1] as string, apiKey: stack.apiKey });

async function restartGateway(): Promise<void> {
  await stack.gateway.kill9();
  await stack.gateway.start();
  await stack.ready();
}

const idsOf = async (from: Api): Promise<string[]> => (await listOf(from)).map(({ id }) => id);

test("a sandbox made through one gateway is at once usable, listed and deletable through the other", async () => {
  for (const [one, two] of [
    [api, other],
    [other, api],
  ] as const) {
    const id = await one.create();
    assert.equal((await two.execute(id, "echo here")).stdout, "here\n");
    await until("the same list", async () => (await idsOf(two)).join() === id && (await idsOf(one)).join() === id);
    assert.equal((await two.call("DELETE", `/v1/sandboxes/${id}/delete`)).status, 200);
    assert.equal((await one.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status, 404);
    await until("the same list", async () => (await idsOf(one)).length === 0);
  }
});

test("kill -9 of a gateway in mid-stream: the connection breaks, the command ends, nothing is run again", async () => {
  const id = await api.create();
  const { marked, outcome } = await startMarked(api, id);
  const { marked: unaffected } = await startMarked(other, id);
  await stack.gateway.kill9();
  assert.equal((await outcome).kind, "broken");
  await marked.gone();
  assert.ok(unaffected.alive > 0, "the other gateway's command runs on");
  await stack.gateway.start();
  await stack.ready();
  assert.equal(await runsIn(api, id), 2);
  await api.delete(id);
  await unaffected.gone();
});

test("a create and a delete that were acknowledged hold when the gateway is killed at once", async () => {
  const gone = await api.create();
  const kept = await api.create();
  assert.equal((await api.call("DELETE", `/v1/sandboxes/${gone}/delete`)).status, 200);
  await restartGateway();
  await usable(api, kept);
  assert.equal((await api.call("GET", `/v1/sandboxes/${gone}`)).status, 404);
  await assertAgreement(stack, api);
});

test("kill -9 of a gateway amid creates and deletes leaves list and containers in agreement", async () => {
  const old = await Promise.all(Array.from({ length: 3 }, () => api.create()));
  const calls = [
    ...old.map((id) => api.call("DELETE", `/v1/sandboxes/${id}/delete`)),
    ...Array.from({ length: 4 }, () => api.call("POST", "/v1/sandboxes/create", { image: "default" })),
  ];
  await Promise.race(calls);
  await stack.gateway.kill9();
  await Promise.allSettled(calls);
  await stack.gateway.start();
  await stack.ready();
  await assertAgreement(stack, api);
});

test("kill -9 of a gateway in mid-upload keeps the old file and no temporary one", async () => {
  const id = await api.create();
  await api.execute(id, "echo old > /root/target");
  const { ended } = await startEndlessUpload(api, id, "/root/target");
  await stack.gateway.kill9();
  assert.equal(await ended, "broken");
  await until("no temporary file", async () => (await temporaryFiles(other, id)).length === 0);
  assert.equal((await other.execute(id, "cat /root/target")).stdout, "old\n");
  await other.delete(id);
  await stack.gateway.start();
  await stack.ready();
});

test("a gateway that is asked to stop ends its streams with an error", async () => {
  const id = await api.create();
  const { marked, outcome } = await startMarked(api, id);
  await stack.gateway.stop();
  const end = await outcome;
  assert.equal(end.kind, "line");
  assertExplicitEnd(end);
  await marked.gone();
  await stack.gateway.start();
  await stack.ready();
  await api.delete(id);
});

test("a gateway that stops answers what comes on open connections, and closes them, while another is there", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (): Promise<{ status: number | undefined; connection: string | undefined }> => {
    const request = get(`${stack.url}/v1/sandboxes/list`, { agent, headers: { "x-api-key": stack.apiKey } });
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    await answer.resume().toArray();
    return { status: answer.statusCode, connection: answer.headers.connection };
  };
  assert.notEqual((await ask()).connection, "close");
  const stopped = stack.gateway.stop();
  let last = await ask();
  while (last.connection !== "close") {
    assert.equal(last.status, 200);
    last = await ask();
  }
  assert.equal(last.status, 200);
  const isRefused = (): Promise<boolean> =>
    ask().then(
      () => false,
      () => true,
    );
  await until("no further connection is taken", isRefused);
  await stopped;
  agent.destroy();
  await stack.gateway.start();
  await stack.ready();
});

test("a gateway that stops takes the first request of a connection that was made before, while another is there", async () => {
  const connection = await Connection.open(stack.url);
  const stopped = stack.gateway.stop();
  await until("no further connection is taken", () =>
    Connection.open(stack.url).then(
      (further) => further.cut(),
      () => true,
    ),
  );
  // As a client does whose process gets no time.
  await sleep(silentMs);
  const answer = await connection.request("GET", "/v1/sandboxes/list", { "x-api-key": stack.apiKey }).answer();
  assert.deepEqual([answer.status, answer.headers.get("connection")], [200, "close"]);
  await stopped;
  await stack.gateway.start();
  await stack.ready();
});

test("a gateway with a time to leave says at once that it stops, takes new connections for that long, then finishes and closes", async () => {
  const id = await other.create();
  await stack.gateway.kill9();
  // The stream ends after that, however late it begins on a busy machine.
  await using leaving = withSettings(stack.gateway, { SANDGATE_LEAVE_MS: String(leaveMs), SANDGATE_DRAIN_MS: "30000" });
  await leaving.start();
  await stack.ready();
  const anew = async (method: string, path: string, body?: string): Promise<number> => {
    using connection = await Connection.open(stack.url);
    return (await connection.request(method, path, { "x-api-key": stack.apiKey, "content-type": "application/json" }, body).answer()).status;
  };
  const askedMs = performance.now();
  const stopped = leaving.stop();
  // Refused, it would not be known to a load balancer as what it is.
  let ready = await anew("GET", "/readyz");
  while (ready === 200) ready = await anew("GET", "/readyz");
  assert.equal(ready, 503);
  const long = collect(await api.stream(id, `sleep ${leaveMs / 1_000 + 1}; echo whole`));
  assert.equal(await anew("GET", "/v1/sandboxes/list"), 200);
  assert.equal(await anew("POST", `/v1/sandboxes/${id}/execute`, JSON.stringify({ command: "true" })), 200);
  await until("no further connection is taken", () =>
    anew("GET", "/healthz").then(
      () => false,
      () => true,
    ),
  );
  assert.ok(performance.now() - askedMs >= leaveMs, "it has listened for as long as it was to");
  const { stdout, last } = await long;
  assert.deepEqual([stdout, last?.exit_code], ["whole\n", 0]);
  await stopped;
  await stack.gateway.start();
  await stack.ready();
  await other.delete(id);
});

test("a gateway that starts before NATS and before the worker works once they are there", async () => {
  const id = await other.create();
  await Promise.all([stack.gateway.kill9(), stack.worker.kill9(), stack.nats.kill9()]);
  const gateway = stack.gateway.start();
  await stack.nats.start();
  await gateway;
  assert.equal((await fetch(`${stack.url}/readyz`)).status, 503);
  assert.equal((await fetch(`${stack.url}/healthz`)).status, 200);
  assert.equal((await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status, 503);
  await stack.worker.start();
  await stack.ready();
  await usable(api, id);
  await assertAgreement(stack, api);
});

test("a gateway with a certificate speaks HTTPS, and uses a new one without a restart", async () => {
  const id = await other.create();
  const [certificate, key] = [join(stack.dataDir, "gateway.crt"), join(stack.dataDir, "gateway.key")];
  const make = async (): Promise<string> => {
    const subject = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"];
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    await run(["openssl", "req", ...kind, ...subject, "-keyout", `${key}.new`, "-out", `${certificate}.new`]);
    await run(["chmod", "0644", `${key}.new`]);
    for (const file of [certificate, key]) renameSync(`${file}.new`, file);
    return readFileSync(certificate, "utf8");
  };
  const first = await make();
  await stack.gateway.kill9();
  const secure = withSettings(stack.gateway, { SANDGATE_TLS_CERTIFICATE: certificate, SANDGATE_TLS_KEY: key });
  await secure.start();
  const port = Number(new URL(stack.url).port);
  const agent = new SecureAgent({ keepAlive: true, maxSockets: 1, ca: first });
  const call = async (method: string, path: string, body: string | Uint8Array, type: string): Promise<string> => {
    const request = secureRequest({ method, path, port, host: "127.0.0.1", agent, headers: { "x-api-key": stack.apiKey, "content-type": type } });
    request.end(body);
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    return Buffer.concat(await answer.toArray()).toString();
  };
  try {
    const bytes = randomBytes(3 * 1024 * 1024);
    await call("POST", `/v1/sandboxes/${id}/upload?path=/root/bytes`, bytes, "application/octet-stream");
    const command = JSON.stringify({ command: "sha256sum < /root/bytes" });
    assert.match(await call("POST", `/v1/sandboxes/${id}/execute_async`, command, "application/json"), new RegExp(hash("sha256", bytes)));
    await assert.rejects(fetch(stack.url), "plain HTTP is not answered");
    const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/sandboxes/${id}/session`, subprotocol, {
      ca: first,
      headers: { "x-api-key": stack.apiKey },
    });
    await once(socket, "open");
    const second = await make();
    const shown = async (): Promise<string> => {
      const connection = connect({ port, host: "127.0.0.1", ca: [first, second] });
      await once(connection, "secureConnect");
      const { fingerprint256 } = connection.getPeerCertificate();
      connection.destroy();
      return fingerprint256;
    };
    const wanted = new X509Certificate(second).fingerprint256;
    await until("new connections get the new certificate", async () => (await shown()) === wanted);
    assert.match(await call("GET", `/v1/sandboxes/${id}`, "", "application/json"), /"running"/);
    assert.equal(socket.readyState, WebSocket.OPEN);
    socket.terminate();
  } finally {
    agent.destroy();
    await secure.kill9();
  }
  await stack.gateway.start();
  await stack.ready();
  await other.delete(id);
});

test("a bootstrap key that the settings no longer name is revoked on every gateway", async () => {
  const apiKey = `sg_new_${randomBytes(24).toString("base64url")}`;
  await stack.gateway.kill9();
  const changed = withSettings(stack.gateway, { SANDGATE_BOOTSTRAP_API_KEY: apiKey, SANDGATE_BOOTSTRAP_API_KEY_FILE: "" });
  await changed.start();
  try {
    for (const { url } of [api, other]) {
      await until("the new key is known", async () => (await new Api({ url, apiKey }).call("GET", "/v1/sandboxes/list")).status === 200);
      const former = new Api({ url, apiKey: stack.apiKey });
      const refused = await until("the former key is refused", async () => {
        const answer = await former.call<{ error: { code: string; message: string } }>("GET", "/v1/sandboxes/list");
        return answer.status !== 200 && answer;
      });
      assert.deepEqual([refused.status, refused.body.error.code], [401, "unauthorized"]);
      assert.match(refused.body.error.message, /revoked/);
    }
  } finally {
    await changed.kill9();
  }
});
