import assert from "node:assert/strict";
import { test } from "node:test";
import { natsCheck, natsVersion, parseNatsVersion } from "../../../../systemd/supervisor/nats-version.ts";

test("what a server can do follows from its version, number by number", () => {
  const of = (text: string) => parseNatsVersion(`nats-server: v${text}\n`);
  for (const [text, syncsAlways, isPreferred] of [
    ["2.9.25", false, false],
    ["2.10.0", true, false],
    ["2.10.9", true, false],
    ["2.10.23", true, true],
    ["2.11.0", true, true],
    ["3.0.0", true, true],
  ] as const) {
    assert.deepEqual(of(text), { text, syncsAlways, isPreferred });
  }
  assert.match(natsCheck(of("2.9.25")).note ?? "", /power cut/);
  assert.match(natsCheck(of("2.10.0")).note ?? "", /^2.10.23 or later/);
  assert.equal(natsCheck(of("2.11.0")).note, undefined);
});

test("the version of the installed server is found", async () => {
  assert.match((await natsVersion()).text, /^2\.\d+\.\d+$/);
});
