/** Sandboxes of workers that are away, as a gateway shows them, over a real nats-server. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Absences } from "../../../../gateway/fleet/absences.ts";
import { Claims } from "../../../../gateway/fleet/claims.ts";
import { Dispatcher } from "../../../../gateway/fleet/dispatch.ts";
import { EntryMirror } from "../../../../gateway/fleet/entries.ts";
import { SandboxDirectory } from "../../../../gateway/fleet/sandboxes.ts";
import { SandboxEntry, WorkerClaim } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { encodeJson } from "../../../../shared/bus/messages.ts";
import type { Bus } from "../../../../shared/bus/nats.ts";
import { buckets, entryKey, peers as names, subjects } from "../../../../shared/bus/subjects.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { quiet, startNats, type TestNats } from "../../../helpers/nats.ts";
import { presentWorker } from "../../../helpers/present-worker.ts";
import { until } from "../../../helpers/until.ts";

let nats: TestNats;
let bus: Bus;
let bucket: BucketWriter<SandboxEntry>;
beforeEach(async () => {
  nats = await startNats();
  bus = await nats.connect();
  bucket = await BucketWriter.open(bus, buckets.sandboxes, checker(SandboxEntry));
});
afterEach(() => nats?.[Symbol.asyncDispose]());

async function gateway(graceMs: number) {
  const { peers } = await nats.member();
  const claims = await Claims.watch(bus, quiet);
  const workers = new Dispatcher(bus, peers, claims, loadConfig());
  const mirror = await EntryMirror.watch(bus, buckets.sandboxes, checker(SandboxEntry), quiet);
  const sandboxes = new SandboxDirectory(mirror);
  const absences = new Absences({ sandboxes: mirror, workers, peers, graceMs, log: quiet });
  const stop = (): void => {
    absences.stop();
    claims.stop();
    mirror.stop();
  };
  return { workers, claims, sandboxes, [Symbol.dispose]: stop };
}

const entry = (worker_id: string, status: SandboxEntry["status"] = "running"): SandboxEntry => {
  const id = newId("sandbox");
  const size = { cpu: 1, memory: 512, storage: 5, network: "none", image: "default" } as const;
  return { id, name: id, account_id: "a", key_id: "k", worker_id, status, created_at_ms: 1, ...size };
};
const put = (value: SandboxEntry): Promise<void> => bucket.put(entryKey(value.worker_id, value.id), value);

const beat = (id: string, process: string, more: object = {}): void => {
  const peer = names.worker(id, process);
  bus.publish(subjects.presence(peer), encodeJson({ ...presentWorker(id, more), peer }));
};

test("the sandboxes of a worker that stays away are in error in every view, and come back with it", async () => {
  const [running, broken, other] = [entry("w1"), { ...entry("w1", "error"), error: "its own" }, entry("w2")];
  for (const each of [running, broken, other]) await put(each);
  using seen = await gateway(1_500);
  const { sandboxes } = seen;
  const beats = setInterval(() => beat("w2", "p"), 500);
  const statusOf = async ({ id }: SandboxEntry): Promise<string> => (await sandboxes.findOfAny(id)).status;
  try {
    const before = sandboxes.ofAccount("a");
    assert.equal(await statusOf(running), "running");
    await until("the grace to be over", async () => (await statusOf(running)) === "error");
    const shown = await sandboxes.find(running.id, "a");
    assert.match(shown.error ?? "", /^its worker is gone, at least since 2.*Z; the sandbox comes back with it$/);
    assert.notEqual(sandboxes.ofAccount("a"), before);
    assert.equal(
      sandboxes.ofAccount("a").find(({ id }) => id === running.id),
      shown,
    );
    assert.equal(
      [...sandboxes.all()].find(({ id }) => id === running.id),
      shown,
    );
    assert.equal((await sandboxes.findOfAny(broken.id)).error, "its own");
    assert.equal(await statusOf(other), "running");
    assert.deepEqual(await bucket.read(entryKey("w1", running.id)), running, "the entry itself stays as it is");
    const late = entry("w1", "creating");
    await put(late);
    await until("the late one", async () => (await statusOf(late)) === "error");
    beat("w1", "p");
    await until("its return", async () => (await statusOf(running)) === "running");
    assert.deepEqual(await sandboxes.findOfAny(running.id), running);
    assert.equal(await statusOf(late), "creating");
    await bucket.delete(entryKey("w1", running.id));
    await sandboxes.caughtUp();
    await assert.rejects(sandboxes.findOfAny(running.id), { code: "not_found" });
  } finally {
    clearInterval(beats);
  }
});

test("no process speaks for a worker that was replaced or forgotten", async () => {
  using seen = await gateway(60_000);
  const { workers, claims } = seen;
  const writing = await BucketWriter.open(bus, buckets.workers, checker(WorkerClaim));
  await writing.put("w1", { home: "a", epoch: 2, peer: names.worker("w1", "second"), claimed_at_ms: 1 });
  await claims.caughtUp();
  beat("w1", "first", { epoch: 1 });
  beat("w2", "former");
  await until("the one of a former version", () => workers.has("w2"));
  assert.ok(!workers.has("w1"));
  beat("w1", "second", { epoch: 2 });
  await until("the second", () => workers.has("w1"));
  await claims.forget("w1", assert.fail);
  await claims.forget("w2", assert.fail);
  assert.deepEqual(workers.workers(), []);
});
