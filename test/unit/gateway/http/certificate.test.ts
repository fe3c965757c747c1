import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { certificateFiles } from "../../../../gateway/http/certificate.ts";
import { run } from "../../../../systemd/base/run.ts";

test("certificate and key must both be there, be readable, and belong together", async (context) => {
  const dir = mkdtempSync(join(tmpdir(), "sandgate-certificate-"));
  context.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = (name: string): string => join(dir, name);
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test"];
  for (const name of ["one", "two"]) await run(["openssl", "req", ...kind, "-keyout", file(`${name}.key`), "-out", file(`${name}.crt`)]);
  writeFileSync(file("nothing"), "");
  const of = (certificate: string, key: string) => certificateFiles({ tlsCertificate: certificate && file(certificate), tlsKey: key && file(key) });
  assert.equal(of("", ""), undefined);
  assert.deepEqual(of("one.crt", "one.key"), { certificate: file("one.crt"), key: file("one.key") });
  assert.throws(() => of("one.crt", ""), /SANDGATE_TLS_CERTIFICATE and SANDGATE_TLS_KEY need each other/);
  for (const [certificate, key] of [
    ["one.crt", "two.key"],
    ["one.crt", "missing"],
    ["nothing", "one.key"],
  ] as const) {
    assert.throws(() => of(certificate, key), /cannot be used/, `${certificate} ${key}`);
  }
});
