/** What another local user tries on the bus: to be taken for the server while it is away, and to get in without being anybody. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { TLSSocket } from "node:tls";
import { createUser } from "@nats-io/nkeys";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import { serverName } from "../../../shared/bus/subjects.ts";
import { run } from "../../../systemd/base/run.ts";
import { secretsOf } from "../../../systemd/supervisor/bus-identities.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { assertUnavailable, plain, usable } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const { path: scratch } = fixture(temporaryFolder("walls-bus"));
const stack = await fixture(startStack({ name: "walls-bus", settings: plain }));
const api = new Api(stack);
const sandbox = await api.create();

const port = (): number => Number(new URL(stack.natsUrl).port);
const info = (more: object): string =>
  `INFO ${JSON.stringify({ server_id: "x", version: "2.9.10", proto: 1, headers: true, jetstream: true, max_payload: 1 << 20, nonce: "bm9uY2U", auth_required: true, ...more })}\r\n`;

/** Listens in the server's place and keeps all that it is told. */
class Impostor {
  readonly said: Buffer[] = [];
  visits = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => this.#greet(socket));
  readonly #greeting: string;
  readonly #tls: { key: string; cert: string } | undefined;

  constructor(greeting: string, tls?: { key: string; cert: string }) {
    this.#greeting = greeting;
    this.#tls = tls;
  }

  async listen(): Promise<void> {
    this.#server.listen(port(), "127.0.0.1");
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #greet(socket: Socket): void {
    this.visits++;
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.write(this.#greeting);
    if (!this.#tls) return void socket.on("data", (data: Buffer) => this.said.push(data));
    const secured = new TLSSocket(socket, { isServer: true, ...this.#tls });
    secured.on("error", () => {});
    secured.on("data", (data: Buffer) => this.said.push(data));
  }
}

async function foreignCertificate(): Promise<{ key: string; cert: string }> {
  const [keyFile, certFile] = [join(scratch, "key.pem"), join(scratch, "cert.pem")];
  const name = ["-subj", `/CN=${serverName}`, "-addext", `subjectAltName=DNS:${serverName}`];
  await run([
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "1",
    ...name,
    "-keyout",
    keyFile,
    "-out",
    certFile,
  ]);
  return { key: readFileSync(keyFile, "utf8"), cert: readFileSync(certFile, "utf8") };
}

/** Puts an impostor in the server's place until both parts have come to it several times, and calls are made meanwhile. */
async function impersonate(impostor: Impostor): Promise<void> {
  await stack.nats.kill9();
  await impostor.listen();
  try {
    await until("the parts have come to it", () => impostor.visits >= 8);
    assertUnavailable(await api.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: "echo told-to-the-impostor" }));
    await until("they have come again", () => impostor.visits >= 12);
  } finally {
    await impostor.close();
    await stack.nats.start();
  }
  await usable(api, sandbox);
}

test("is sent credentials or commands as a server without TLS, while the real one is away", async () => {
  const impostor = new Impostor(info({}));
  await impersonate(impostor);
  assert.equal(Buffer.concat(impostor.said).toString(), "");
});

test("is sent credentials or commands as a server that asks for nothing", async () => {
  const impostor = new Impostor(info({ auth_required: false, nonce: undefined, tls_required: false }));
  await impersonate(impostor);
  assert.equal(Buffer.concat(impostor.said).toString(), "");
});

test("is sent credentials or commands as a server with TLS and a certificate of the same name", async () => {
  const impostor = new Impostor(info({ tls_required: true, tls_available: true }), await foreignCertificate());
  await impersonate(impostor);
  assert.equal(Buffer.concat(impostor.said).toString(), "");
});

test("logs in to the real server as nobody, with the former user name, or with an nkey of its own", async () => {
  const tls = { ca: readFileSync(secretsOf(stack.instance).certificate, "utf8"), servername: serverName };
  const own = nkeyAuthenticator(createUser().getSeed());
  for (const who of [{}, { user: "sandgate", pass: "" }, { authenticator: own }]) {
    const connecting = connect({ servers: `127.0.0.1:${port()}`, tls, reconnect: false, maxReconnectAttempts: 0, ...who });
    await assert.rejects(
      connecting.then((connection) => connection.close()),
      { message: /Authorization Violation/i },
    );
  }
});

test("reads the seeds of the parts, or the key of the server", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("needs root, to act as another user");
  // As an installation's folder is, and not the tests' own, which only root can enter.
  chmodSync(stack.dataDir, 0o755);
  const { secrets } = stack.instance.paths;
  const files = readdirSync(secrets).filter((name) => !name.endsWith(".crt"));
  assert.ok(files.length >= 3);
  for (const name of files) {
    const reading = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--", "cat", join(secrets, name)]);
    await assert.rejects(reading, /Permission denied/, name);
  }
});

test("finds a secret of the bus in what the parts were started with", () => {
  const seeds = readdirSync(stack.instance.paths.secrets)
    .filter((name) => name.endsWith(".nk"))
    .flatMap((name) => readFileSync(join(stack.instance.paths.secrets, name), "utf8").trim().split("\n"));
  for (const { pid } of [stack.worker, stack.gateway, stack.nats]) {
    const told = readFileSync(`/proc/${pid}/environ`, "utf8") + readFileSync(`/proc/${pid}/cmdline`, "utf8");
    for (const seed of seeds) assert.ok(!told.includes(seed));
  }
});

test("control: after all this the sandbox is there and runs commands", async () => {
  assert.equal((await api.execute(sandbox, "echo here")).stdout, "here\n");
});
