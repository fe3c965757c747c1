/** Records of a worker that cannot be read any more: they are put aside, and everything that was promised is still there. */
import assert from "node:assert/strict";
import { readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { usable } from "../../helpers/resilience.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import type { Stack } from "../../helpers/stack.ts";

export function damagedRecordTests(stack: Stack): void {
  const api = new Api(stack);
  const calls = new SnapshotCalls(api);

  const damages: Record<string, (file: string) => void> = {
    "cut short": (file) => truncateSync(file, Math.floor(statSync(file).size / 2)),
    "cut to nothing": (file) => truncateSync(file, 100),
    "overwritten at its beginning": (file) => writeFileSync(file, Buffer.alloc(8192, 0x5a), { flag: "r+" }),
  };
  for (const [damage, cause] of Object.entries(damages)) {
    test(`a file of records that was ${damage} costs no sandbox and no snapshot`, async () => {
      const dir = join(stack.worker.spec.env.SANDGATE_DATA_DIR ?? "", "worker");
      const asideBefore = namesOfAside(dir).length;
      const sandbox = await api.create({ name: "kept", env_vars: { COLOUR: "blue" } });
      await api.execute(sandbox, "echo kept > /root/file");
      const snapshot = await calls.take(sandbox, { name: "kept" });
      const { id: restored } = await calls.restored(snapshot.id);
      await stack.worker.kill9();
      cause(join(dir, "lmdb/data.mdb"));
      await stack.worker.start();
      await stack.ready();
      assert.equal(namesOfAside(dir).length, asideBefore + 1);
      assert.ok(stack.worker.linesSinceStart.some((line) => line.includes('"store_broken"')));
      for (const id of [sandbox, restored]) {
        await usable(api, id);
        assert.equal((await api.execute(id, 'cat /root/file; echo "$COLOUR"')).stdout, "kept\nblue\n");
      }
      const again = await calls.restored(snapshot.id);
      assert.equal((await api.execute(again.id, "cat /root/file")).stdout, "kept\n");
      for (const id of [sandbox, restored, again.id]) assert.equal((await api.call("DELETE", `/v1/sandboxes/${id}/delete`)).status, 200);
      assert.equal((await api.call("DELETE", `/v1/snapshots/${snapshot.id}`)).status, 200);
      await stack.worker.kill9();
      await stack.worker.start();
      await stack.ready();
      assert.equal(namesOfAside(dir).length, asideBefore + 1);
      assert.deepEqual(await stack.containers(), []);
    });
  }

  const namesOfAside = (dir: string): string[] => readdirSync(dir).filter((name) => name.startsWith("lmdb.broken-"));
}
