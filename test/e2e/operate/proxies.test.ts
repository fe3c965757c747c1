/** The configurations of reverse proxies in the README, as printed there, before two gateways. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { AuditEntry } from "../../../shared/schemas/admin/audit.ts";
import { run } from "../../../systemd/base/run.ts";
import { searchPath } from "../../../systemd/base/search-path.mjs";
import { Api, chunksOf } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { download, sha256, uploadRaw } from "../../helpers/files.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { testPort } from "../../helpers/ports.ts";
import { TestProcess } from "../../helpers/process.ts";
import { Mark } from "../../helpers/sandboxes.ts";
import { start } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { unpackedPackage } from "../../helpers/unpacked.ts";
import { until } from "../../helpers/until.ts";

const readme = readFileSync("README.md", "utf8");
const { path: folder } = fixture(temporaryFolder("proxies", 0o711));
const ports = { nginx: await testPort(), caddy: await testPort() };
const settings = { SANDGATE_TRUST_PROXY: "true", SANDGATE_LEAVE_MS: "3000" };
const stack = await fixture(startStack({ name: "proxies", gateways: 2, settings }));
/** Enough that each gateway would get some. */
const callsAfter = 8;
const operator = new Api(stack);

/** The block of this language, with what stands in the README for the operator's own. */
function recipe(language: string, own: Readonly<Record<string, string>>): string {
  const block = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(readme)?.[1] ?? assert.fail(`no ${language}`);
  return Object.entries({ ...own, "10.0.0.1:8080": new URL(stack.urls[0] ?? "").host, "10.0.0.2:8080": new URL(stack.urls[1] ?? "").host }).reduce(
    (text, [from, to]) => (text.includes(from) ? text.replaceAll(from, to) : assert.fail(`${from} is not in it`)),
    block,
  );
}

/** @returns the certificate to trust */
async function startNginx(): Promise<string> {
  const dir = join(folder, "nginx");
  mkdirSync(dir, { mode: 0o711 });
  const [key, certificate] = [join(dir, "privkey.pem"), join(dir, "fullchain.pem")];
  const issue = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  await run([...issue, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]);
  const block = recipe("nginx", { "listen 443": `listen ${ports.nginx}`, "sandboxes.example.com": "localhost", "/etc/ssl/sandboxes": dir });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${dir}/${name};`);
  const main = `daemon off; pid ${dir}/pid; error_log stderr notice; events {}`;
  writeFileSync(join(dir, "nginx.conf"), `${main}\nhttp {\naccess_log off; ${temporary.join(" ")}\n${block}}\n`);
  const program = join(await unpackedPackage("nginx"), "usr/sbin/nginx");
  await startProxy("nginx", [program, "-p", dir, "-e", "stderr", "-c", join(dir, "nginx.conf")], "start worker process ");
  return readFileSync(certificate, "utf8");
}

/** @returns the certificate to trust */
async function startCaddy(): Promise<string> {
  const dir = join(folder, "caddy");
  mkdirSync(dir);
  const block = recipe("caddyfile", { "sandboxes.example.com": `https://localhost:${ports.caddy}` });
  writeFileSync(join(dir, "Caddyfile"), `{\nadmin off\nauto_https disable_redirects\nskip_install_trust\n}\n${block}`);
  const program = join(await unpackedPackage("caddy"), "usr/bin/caddy");
  await startProxy("caddy", [program, "run", "--config", join(dir, "Caddyfile"), "--adapter", "caddyfile"], "serving initial configuration", {
    XDG_DATA_HOME: dir,
    XDG_CONFIG_HOME: dir,
  });
  return until("the certificate", () => readFileSync(join(dir, "caddy/pki/authorities/local/root.crt"), "utf8"));
}

async function startProxy(name: string, argv: string[], ready: string, env: Record<string, string> = {}): Promise<void> {
  const logFile = join(folder, `${name}.log`);
  const proxy = new TestProcess({ name, argv, env: { PATH: searchPath, ...env }, cwd: "/", logFile, isReady: (line) => line.includes(ready) });
  // Killed, nginx would leave the processes that it has started.
  atEnd(() => proxy.stop());
  await proxy.start();
}
setDefaultCACertificates([...getCACertificates("default"), await startNginx(), await startCaddy()]);

for (const [name, port] of Object.entries(ports)) {
  const api = new Api({ url: `https://localhost:${port}`, apiKey: stack.apiKey });
  let id = "";

  test(`${name}: a command's output comes while it runs`, async () => {
    await until("it answers", async () => (await api.call("GET", "/readyz")).status === 200);
    id = await api.create();
    const chunks = chunksOf(await api.stream(id, "echo first; until [ -e /root/go ]; do sleep 0.05; done; echo last"));
    assert.deepEqual((await chunks.next()).value, { stdout: "first\n" });
    await api.execute(id, "touch /root/go");
    assert.deepEqual((await chunks.next()).value, { stdout: "last\n" });
    assert.deepEqual((await chunks.next()).value, { exit_code: 0 });
  });

  test(`${name}: a live session is passed on`, async () => {
    const session = await start(api, id, { command: "tr a-z A-Z" });
    session.type("hello");
    session.send({ type: "stdin_close" });
    await session.closed();
    assert.deepEqual([session.text[1], session.messages.at(-1)], ["HELLO", { type: "exit", exit_code: 0 }]);
  });

  test(`${name}: some megabytes go up and down`, async () => {
    const bytes = randomBytes(8 * 1024 ** 2);
    expectOk(await uploadRaw(api, id, "/root/file", bytes));
    assert.equal(sha256((await download(api, id, "/root/file")).body), sha256(bytes));
  });

  test(`${name}: a command ends when its client is gone`, async () => {
    const mark = new Mark();
    const client = new AbortController();
    const response = await api.stream(id, "echo here; sleep 600", { env: mark.env }, client.signal);
    await response.body?.getReader().read();
    assert.notDeepEqual(mark.living(), []);
    client.abort();
    await mark.gone();
  });

  test(`${name}: the audit record has the client's address, whatever the client says of it`, async () => {
    const address = `127.0.0.${name.length}`;
    const asked = request(`${api.url}/v1/auth/login`, {
      ...{ method: "POST", family: 4, localAddress: address, ca: getCACertificates("default") },
      headers: { "content-type": "application/json", "x-forwarded-for": "203.0.113.9" },
    });
    const answered = once(asked, "response") as Promise<[IncomingMessage]>;
    asked.end(JSON.stringify({ email: `${name}@example.com`, password: "no such password" }));
    const [answer] = await answered;
    answer.resume();
    assert.equal(answer.statusCode, 401);
    await until("it is recorded", async () => {
      const { data } = (await operator.call<{ data: AuditEntry[] }>("GET", "/v1/admin/audit")).body;
      return data.some((entry) => entry.action === "logIn" && entry.address === address);
    });
  });

  test(`${name}: a gateway leaves, and no call fails`, async () => {
    const [gateway] = stack.gateways;
    let isAway = false;
    const left = gateway?.stop().finally(() => {
      isAway = true;
    });
    const call = async (): Promise<void> => assert.equal((await api.execute(id, "echo here")).stdout, "here\n");
    while (!isAway) await call();
    for (let count = 0; count < callsAfter; count++) await call();
    await left;
    await gateway?.start();
    await stack.ready();
  });
}
