/** Bodies that are streamed to a client which does not keep up. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../../../../systemd/base/run.ts";

const program = join(import.meta.dirname, "../fixtures/slow-readers.ts");

test("what is streamed through a network to a slow reader arrives as it is", async () => {
  // With packets as small as those of a network; between programs of one machine they are larger.
  const script = 'ip link set lo mtu 1500 up && exec "$@"';
  const printed = await run(["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh", process.execPath, "--import", "tsx", program]);
  assert.deepEqual(JSON.parse(printed), { whole: 40 });
});
