/** What strangers on the network can do to a line between two machines. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect as connectTls, createServer as createTlsServer, type TlsOptions } from "node:tls";
import { lineTokenBytes, lineTokenLetters } from "../../../../../shared/bus/contract/lines.ts";
import { comeTo, receive } from "../../../../../shared/stream/line/introduction.ts";
import { answering, dial, type LineAddress, publicNameOf } from "../../../../../shared/stream/line/tls.ts";
import { makeCertificate, newCertificateKey } from "../../../../../systemd/supervisor/certificate.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";
import { LineProxy } from "../../../../helpers/lines.ts";

const newToken = (): string => randomBytes(lineTokenBytes).toString("hex");
const host = "127.0.0.1";
const welcome = "\u0001";

/** A server on a free port, until the end of the block. */
async function listening<S extends Server>(server: S): Promise<{ address: LineAddress } & Disposable> {
  server.listen(0, host);
  await once(server, "listening");
  return { address: { host, port: (server.address() as AddressInfo).port }, [Symbol.dispose]: () => void server.close() };
}

/** A gateway that expects one token, any number of times, and says what it hears on a line. */
async function expecting(token: string) {
  const heard: string[] = [];
  const refusals: Promise<unknown>[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    const come = receive(
      answering(socket, (name) => (name === publicNameOf(token) ? token : undefined)),
      lineTokenLetters,
      (shown) => (shown === token ? (line) => void line.on("data", (bytes) => heard.push(String(bytes))).resume() : undefined),
    );
    refusals.push(come.catch((error: unknown) => error));
  });
  return { heard, refusals, ...(await listening(server)) };
}

async function answersTo(socket: Socket): Promise<string> {
  const bytes = await socket.toArray().catch(() => []);
  return Buffer.concat(bytes).toString("latin1");
}

test("who has the token gets a line, with TLS 1.3", async () => {
  const token = newToken();
  using gateway = await expecting(token);
  const socket = dial(gateway.address, token);
  await once(socket, "secureConnect");
  assert.equal(socket.getProtocol(), "TLSv1.3");
  socket.destroy();
});

test("nothing that crosses the network shows the token or what is said, and sent once more it lets nobody in", async () => {
  const token = newToken();
  using gateway = await expecting(token);
  using proxy = await LineProxy.onPort(gateway.address);
  const passed: Buffer[] = [];
  const sent: Buffer[] = [];
  proxy.onPass = (bytes) => passed.push(Buffer.from(bytes));
  proxy.onSend = (bytes) => sent.push(Buffer.from(bytes));
  const socket = await comeTo(proxy.address, token);
  socket.end("what is said");
  await once(socket, "close");
  assert.deepEqual(gateway.heard, ["what is said"]);
  for (const secret of [token, Buffer.from(token, "hex"), "what is said"]) assert.equal(Buffer.concat(passed).includes(secret), false);
  const again = connect(gateway.address).on("error", () => {});
  again.end(Buffer.concat(sent));
  await answersTo(again);
  assert.ok((await Promise.all(gateway.refusals))[1] instanceof Error);
  assert.deepEqual(gateway.heard, ["what is said"]);
});

test("whoever has no token is refused, whatever comes", async () => {
  const token = newToken();
  using gateway = await expecting(token);
  await assert.rejects(comeTo(gateway.address, newToken()), { code: "unavailable" });
  const other = newToken();
  // The name is no secret.
  const named = connectTls({
    ...gateway.address,
    minVersion: "TLSv1.3",
    ciphers: "TLS_AES_128_GCM_SHA256",
    pskCallback: () => ({ psk: Buffer.from(other, "hex"), identity: publicNameOf(token) }),
  });
  const trusting = connectTls({ ...gateway.address, rejectUnauthorized: false });
  for (const stranger of [named, trusting]) await assert.rejects(once(stranger, "secureConnect"));
  for (const words of [token, "GET / HTTP/1.1\r\n\r\n", randomBytes(4_096)]) {
    const stranger = connect(gateway.address).on("error", () => {});
    stranger.write(words);
    assert.equal((await answersTo(stranger)).endsWith(welcome), false);
  }
  assert.ok((await Promise.all(gateway.refusals)).every((refusal) => refusal instanceof Error));
  assert.deepEqual(gateway.heard, []);
});

test("a gateway without the token hears nothing of a worker, with whatever certificate", async () => {
  using folder = temporaryFolder("impostor");
  const keyFile = join(folder.path, "key");
  writeFileSync(keyFile, newCertificateKey());
  const certificate = { key: readFileSync(keyFile), cert: await makeCertificate({ keyFile, names: [`IP:${host}`] }) };
  const psk: TlsOptions = { ciphers: "TLS_AES_128_GCM_SHA256", pskCallback: () => randomBytes(lineTokenBytes) };
  for (const options of [certificate, psk]) {
    const heard: string[] = [];
    const impostor = createTlsServer(options, (socket) => socket.on("error", () => {}).on("data", (bytes) => heard.push(String(bytes))));
    using there = await listening(impostor);
    await assert.rejects(comeTo(there.address, newToken()), { code: "unavailable" });
    assert.deepEqual(heard, []);
  }
});

test("a worker is led to addresses only, not to names", () => {
  for (const name of ["localhost", "example.com", ""]) assert.throws(() => dial({ host: name, port: 1 }, newToken()), { code: "invalid_request" });
});
