/** Streams between a gateway and a worker of different machines: over TLS from the one to the other. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { testPort } from "../../helpers/ports.ts";
import { startStack } from "../../helpers/stack.ts";
import { loseWorkerInStream, transfersOf, untilInUse, waysOf } from "../../helpers/transfers.ts";

const [metricsPort, linesPort] = [await testPort(), await testPort()];
const settings = { SANDGATE_LINES_DIR: "", SANDGATE_LINES_HOST: "127.0.0.1", SANDGATE_LINES_PORT: String(linesPort) };
const stack = await fixture(startStack({ name: "tls", settings: { ...settings, SANDGATE_METRICS_PORT: String(metricsPort) } }));
const api = new Api(stack);
const id = await api.create();

const lineInUse = (): Promise<void> => untilInUse("tls", api, id, metricsPort);

test("streams of all kinds go over TLS", async () => {
  await lineInUse();
  const transfers = Object.values(transfersOf(api, id));
  const before = await waysOf(metricsPort);
  for (const transfer of transfers) await transfer();
  const after = await waysOf(metricsPort);
  assert.ok(after.tls >= before.tls + transfers.length);
  assert.deepEqual(after, { ...before, tls: after.tls });
});

test("strangers who hold the port do not touch what goes on, and a worker that is killed comes back to it", async () => {
  const strangers = Array.from({ length: 100 }, () => connect(linesPort, "127.0.0.1").on("error", () => {}));
  await loseWorkerInStream(stack, api, id);
  await lineInUse();
  for (const stranger of strangers) stranger.destroy();
});
