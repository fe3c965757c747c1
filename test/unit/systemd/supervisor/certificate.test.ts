/** Certificates of NATS servers, as openssl makes them and Node's own verification reads them. */
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect, createServer } from "node:tls";
import { makeCertificate, newCertificateKey } from "../../../../systemd/supervisor/certificate.ts";

const dayMs = 86_400_000;
const dir = mkdtempSync(join(tmpdir(), "certificate-test-"));
after(() => rmSync(dir, { recursive: true, force: true }));
const put = (name: string, text: string): string => {
  const path = join(dir, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

const authorityKey = put("authority.key", newCertificateKey());
const authority = await makeCertificate({ keyFile: authorityKey, names: ["DNS:authority.example"] });
const nodeKey = newCertificateKey();
const node = await makeCertificate({
  keyFile: put("node.key", nodeKey),
  names: ["DNS:node.example", "IP:10.0.0.7"],
  authority: { certificate: put("authority.crt", authority), key: authorityKey },
});

test("they are valid from a day before they are made, for clocks that are behind, and for a hundred years", () => {
  for (const certificate of [authority, node].map((text) => new X509Certificate(text))) {
    const fromMs = Date.now() - Date.parse(certificate.validFrom);
    assert.ok(fromMs >= dayMs && fromMs < dayMs + 600_000, certificate.validFrom);
    const toMs = Date.parse(certificate.validTo) - Date.now();
    assert.ok(toMs > 36_499 * dayMs && toMs <= 36_501 * dayMs, certificate.validTo);
  }
});

test("the authority signs what is for these names, with a key of its own, and is the only authority", () => {
  const [issuer, certificate] = [new X509Certificate(authority), new X509Certificate(node)];
  assert.ok(issuer.ca && !certificate.ca);
  assert.ok(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey) && certificate.checkPrivateKey(createPrivateKey(nodeKey)));
  assert.equal(certificate.checkHost("node.example"), "node.example");
  assert.equal(certificate.checkIP("10.0.0.7"), "10.0.0.7");
  assert.equal(certificate.checkHost("other.example"), undefined);
});

test("who knows the authority trusts the server, and nobody else", async () => {
  const server = createServer({ cert: node, key: nodeKey }, (socket) => socket.end("hello")).on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const ask = { port, host: "127.0.0.1", servername: "node.example" };
    const [text] = (await once(connect({ ...ask, ca: authority }), "data")) as [Buffer];
    assert.equal(text.toString(), "hello");
    await assert.rejects(once(connect(ask), "secureConnect"));
  } finally {
    server.close();
  }
});
