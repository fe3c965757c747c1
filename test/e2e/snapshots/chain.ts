/** Snapshots of restored sandboxes, one upon the other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { hostState, isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { type Snapshot, SnapshotCalls } from "../../helpers/snapshots.ts";
import type { Stack } from "../../helpers/stack.ts";
import { assertSameFiles, describeSandbox } from "../../helpers/trees.ts";

const changeBytes = 1_000_000;

/** @param depth an even number of restores */
export function chainTests(stack: Stack, depth: number): void {
  const api = new Api(stack);
  const calls = new SnapshotCalls(api);

  /** Adds a file and a line, removes a file of two changes ago and a folder that is made anew. */
  const change = (n: number): string =>
    `cd /root && head -c ${changeBytes} /dev/urandom > file-${n} && echo line-${n} >> all && rm -f file-${n - 2} && rm -rf folder && mkdir folder && echo ${n} > folder/${n}`;

  /** `depth` snapshots, each of a sandbox restored from the one before; sandboxes in the order of their making. */
  async function makeChain(): Promise<{ snapshots: Snapshot[]; sandboxes: string[] }> {
    const sandboxes = [await api.create({ resources: { cpus: 1, memory: 128, storage: 5 }, network: { access: "none" } })];
    const snapshots: Snapshot[] = [];
    for (let n = 0; n < depth; n++) {
      assert.equal((await api.execute(sandboxes[n] as string, change(n))).exit_code, 0);
      snapshots.push(await calls.take(sandboxes[n] as string, { quick: n % 2 === 1 }));
      sandboxes.push((await calls.restored((snapshots[n] as Snapshot).id)).id);
    }
    return { snapshots, sandboxes };
  }

  const lines = Array.from({ length: depth }, (_, n) => `line-${n}`).join("\n");
  const look = "cat /root/all; ls /root/folder /root/file-*";
  const expected = `${lines}\n/root/file-${depth - 2}\n/root/file-${depth - 1}\n\n/root/folder:\n${depth - 1}\n`;

  test(`restore ${depth} of a restore has all changes, and its snapshot only the last one`, async () => {
    const { snapshots, sandboxes } = await makeChain();
    const deepest = sandboxes[depth] as string;
    assert.equal((await api.execute(deepest, look)).stdout, expected);
    const sizeMax = (isOnVolume(stack.worker) ? 3 : 2) * changeBytes;
    for (const { size_bytes } of snapshots) assert.ok(size_bytes >= changeBytes && size_bytes < sizeMax, `${size_bytes}`);

    const files = await describeSandbox(api, deepest);
    const last = snapshots[depth - 1] as Snapshot;
    // Neither the order of making nor the reverse; sandboxes and snapshots mixed.
    const even = Array.from({ length: depth / 2 }, (_, index) => 2 * index);
    const odd = even.map((n) => n + 1);
    for (const n of even) expectOk(await calls.delete((snapshots[n] as Snapshot).id));
    await Promise.all(odd.map((n) => api.delete(sandboxes[n] as string)));
    await Promise.all(odd.filter((n) => n !== depth - 1).map(async (n) => expectOk(await calls.delete((snapshots[n] as Snapshot).id))));
    await Promise.all(even.map((n) => api.delete(sandboxes[n] as string)));
    await assertSameFiles(api, deepest, files);
    const again = (await calls.restored(last.id)).id;
    await assertSameFiles(api, again, files);
    await untilHostHas(stack.worker, { layers: isOnVolume(stack.worker) ? 1 : depth, roots: [deepest, again] });

    expectOk(await calls.delete(last.id));
    await assertSameFiles(api, deepest, files);
    await stack.worker.kill9();
    await stack.worker.start();
    await stack.ready();
    await assertSameFiles(api, deepest, files);
    await Promise.all([deepest, again].map((id) => api.delete(id)));
    await untilHostHas(stack.worker, { layers: 0, roots: [] });
  });

  test("a restored sandbox whose container has stopped comes back with its files", async () => {
    const first = await api.create();
    await api.execute(first, "echo one > /root/one");
    const { sandbox, snapshot } = await calls.cloned(first);
    await api.execute(sandbox.id, "echo two > /root/two; rm /root/one");
    const files = await describeSandbox(api, sandbox.id);
    const container = await stack.containerOf(sandbox.id);
    await stack.worker.kill9();
    await stack.endContainer(container);
    const mountsOf = () => hostState(stack.worker).mounts;
    await stack.worker.start();
    await stack.ready();
    assert.equal(mountsOf().length, 2);
    await assertSameFiles(api, sandbox.id, files);
    await Promise.all([first, sandbox.id].map((id) => api.delete(id)));
    expectOk(await calls.delete(snapshot.id));
    await untilHostHas(stack.worker, { layers: 0, roots: [] });
  });

  test("many snapshots that are deleted, and sandboxes that are restored, at the same time do not disturb each other", async () => {
    const source = await api.create();
    const made: Snapshot[] = [];
    for (let n = 0; n < 8; n++) made.push(await calls.take(source));
    const [kept, ...others] = made as [Snapshot, ...Snapshot[]];
    const restores = Array.from({ length: 3 }, () => calls.restored(kept.id));
    const deletions = others.map(async ({ id }) => expectOk(await calls.delete(id)));
    const restored = await Promise.all(restores);
    await Promise.all(deletions);
    expectOk(await calls.delete(kept.id));
    await untilHostHas(stack.worker, { layers: isOnVolume(stack.worker) ? 0 : 1, roots: [source, ...restored.map(({ id }) => id)] });
    await Promise.all([source, ...restored.map(({ id }) => id)].map((id) => api.delete(id)));
    await untilHostHas(stack.worker, { layers: 0, roots: [] });
  });
}
