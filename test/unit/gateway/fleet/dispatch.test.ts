/** Which workers a new sandbox is asked of, one after the other, over a real nats-server. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Claims } from "../../../../gateway/fleet/claims.ts";
import { Dispatcher } from "../../../../gateway/fleet/dispatch.ts";
import { PeerWatch } from "../../../../shared/bus/presence.ts";
import { callSubject, peers as names, processOfWorker } from "../../../../shared/bus/subjects.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { GiB, presentWorker } from "../../../helpers/present-worker.ts";
import { until } from "../../../helpers/until.ts";

const nats = await fixture(startNats());
const { bus, peers } = await nats.member();
const dispatcher = new Dispatcher(bus, peers, await Claims.watch(bus, quiet), loadConfig({}));

const size = { cpu: 1, memory: 512, storage: 5, network: "none", image: "default" } as const;
const wanted = { request_id: "req_1", account_id: "a", key_id: "k", reservation_id: "rsv_1", env_vars: {}, wait: true, ...size };
const full = new SandgateError("insufficient_storage", "the host has too little free disk space", { refused: true });

let workers: PeerWatch[] = [];
/** The workers that were asked, in that order. */
let asked: string[] = [];
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.leave()));
  await until("they are gone", () => dispatcher.workers().length === 0);
  workers = [];
  asked = [];
});

/** Workers that are there, the best first. @param answers what each does when it is asked for a sandbox; it listens to nothing without */
async function present(answers: Readonly<Record<string, SandgateError | "makes it" | "does not hear">>): Promise<void> {
  for (const [index, [id, answer]] of Object.entries(answers).entries()) {
    const workerBus = await nats.connect();
    const watch = new PeerWatch(workerBus, names.worker(id, newId("worker")), quiet);
    workers.push(watch);
    const entry = { id: `sb_${id}`, name: "n", account_id: "a", key_id: "k", worker_id: id, status: "running", created_at_ms: 1, ...size };
    const serve = async (): Promise<object> => {
      asked.push(id);
      if (answer instanceof SandgateError) throw answer;
      return entry;
    };
    if (answer !== "does not hear") workerBus.serve(callSubject("create", processOfWorker(watch.peer)), serve);
    const { worker } = presentWorker(id, { epoch: 1, memory_free_bytes: (64 * GiB) / 4 ** index });
    watch.start(() => ({ worker }));
  }
  await until("they are there", () => dispatcher.workers().length === Object.keys(answers).length);
}

test("when a worker refuses or hears nothing, the next one is asked", async () => {
  await present({ full, away: "does not hear", free: "makes it", spare: "makes it" });
  assert.equal((await dispatcher.place(wanted)).worker_id, "free");
  assert.deepEqual(asked, ["full", "free"]);
});

test("what failed after something may have been made is not tried elsewhere", async () => {
  await present({ failing: new SandgateError("insufficient_storage", "the host is out of disk space"), free: "makes it" });
  await assert.rejects(dispatcher.place(wanted), { code: "insufficient_storage", message: "the host is out of disk space" });
  assert.deepEqual(asked, ["failing"]);
});

test("when all refuse, the last refusal is the answer", async () => {
  await present({ first: new SandgateError("unavailable", "the worker is shutting down", { refused: true }), last: full });
  await assert.rejects(dispatcher.place(wanted), { code: "insufficient_storage", message: full.message });
  assert.deepEqual(asked, ["first", "last"]);
});
