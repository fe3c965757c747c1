/** A worker that dies at named points during snapshot calls, and what must hold after it returns. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultPoint, HelperPoint } from "../../shared/faults.ts";
import { attempt } from "../../shared/util/attempt.ts";
import { processIds } from "../../shared/util/proc.ts";
import { commandLineOf, isStopped } from "../../worker/runtime/process/proc.ts";
import { Api } from "./api.ts";
import { stoppedProcesses, untilHostHas } from "./host-state.ts";
import { podmanService, privilegedHelper } from "./part-processes.ts";
import type { TestProcess } from "./process.ts";
import { listOf, plain, usable, withSettings } from "./resilience.ts";
import { type Snapshot, SnapshotCalls } from "./snapshots.ts";
import { type Stack, type StackOptions, startStack } from "./stack.ts";
import { assertSameFiles, describeSandbox, makeEveryKind, pythonCommand } from "./trees.ts";
import { until } from "./until.ts";
import { loopFiles } from "./volume.ts";

/** Counts in a file, by one process: a loop of a shell would start two programs each time. */
const beat = `
import itertools, os, time
file = os.open("/dev/shm/beat", os.O_WRONLY | os.O_CREAT)
for n in itertools.count():
    os.pwrite(file, b"%020d" % n, 0)
    time.sleep(0.02)
`;

/** A stack with one sandbox, in which a program runs, and one snapshot of it. */
export class CrashRig {
  readonly stack: Stack;
  readonly api: Api;
  readonly calls: SnapshotCalls;
  readonly source: string;
  readonly kept: Snapshot;
  /** The contents of `source` when `kept` was taken. */
  readonly #files: readonly string[];
  readonly #faults: string;

  private constructor(parts: { stack: Stack; api: Api; calls: SnapshotCalls; source: string; kept: Snapshot; files: readonly string[]; faults: string }) {
    this.stack = parts.stack;
    this.api = parts.api;
    this.calls = parts.calls;
    this.source = parts.source;
    this.kept = parts.kept;
    this.#files = parts.files;
    this.#faults = parts.faults;
  }

  static async open(name: string, settings: Readonly<Record<string, string>> = {}, options: Partial<StackOptions> = {}): Promise<CrashRig> {
    const faults = join(mkdtempSync(join(tmpdir(), `sandgate-${name}-faults-`)), "point");
    chmodSync(dirname(faults), 0o755);
    const all = { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_TEST_FAULT: faults, ...settings };
    const stack = await startStack({ name, settings: all, ...options });
    try {
      const api = new Api(stack);
      const calls = new SnapshotCalls(api);
      const source = await api.create({ name: "source", resources: { cpus: 1, memory: 512, storage: 2 } });
      await makeEveryKind(api, source);
      const files = await describeSandbox(api, source);
      const kept = await calls.take(source, { name: "kept" });
      const rig = new CrashRig({ stack, api, calls, source, kept, files, faults });
      await rig.#startBeat();
      return rig;
    } catch (error) {
      await stack[Symbol.asyncDispose]();
      rmSync(dirname(faults), { recursive: true });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack[Symbol.asyncDispose]();
    rmSync(dirname(this.#faults), { recursive: true });
  }

  /** Makes a call during which the worker dies at this point, then restarts the worker. @returns the answer to the call */
  async dyingAt<T>(point: FaultPoint, call: () => Promise<T>): Promise<T> {
    const { pid } = this.stack.worker;
    writeFileSync(this.#faults, point);
    const called = call();
    called.catch(() => {}); // It is waited for when the worker is back.
    try {
      await until(`the worker dies at ${point}`, () => !existsSync(`/proc/${pid}`));
    } finally {
      rmSync(this.#faults);
    }
    await this.stack.worker.start();
    await usable(this.api, this.source);
    return called;
  }

  /**
   * Makes a call, and does something when the worker or its helper stands still at this point; the worker goes on after that.
   *
   * @returns the answer, if one came
   */
  async meanwhile<T>(point: FaultPoint | HelperPoint, call: () => Promise<T>, hit: () => Promise<unknown>): Promise<T | undefined> {
    const { worker } = this.stack;
    const { pid } = worker;
    writeFileSync(this.#faults, `${point} SIGSTOP`);
    const called = call().catch(() => undefined);
    try {
      await until(`the worker or its helper is at ${point}`, () => isStopped(pid) || isStopped(privilegedHelper(this.stack) ?? pid));
    } finally {
      rmSync(this.#faults);
    }
    await hit().finally(() => worker.signal("SIGCONT"));
    return called;
  }

  /** `kill -9` of the worker, and a start of it. A helper that is a process of its own goes on. */
  async killWorker(): Promise<void> {
    const { worker } = this.stack;
    const helper = privilegedHelper(this.stack);
    await worker.kill9();
    if (helper !== undefined) attempt(() => process.kill(helper, "SIGCONT"));
    await worker.start();
    await usable(this.api, this.source);
  }

  /** `kill -9` of the helper, where it is a process of its own: another serves the worker's next request. */
  async killHelper(): Promise<void> {
    process.kill(privilegedHelper(this.stack) ?? assert.fail("there is no helper"), "SIGKILL");
  }

  /** `kill -9` of all that runs, sandboxes included, and a start of all, with the volume mounted anew. */
  async killEverything(): Promise<void> {
    const { stack } = this;
    const others = [privilegedHelper(stack), podmanService(stack)].filter((pid) => pid !== undefined);
    for (const part of [stack.worker, stack.gateway, stack.nats]) await part.kill9();
    const containers = (await stack.containers()).map(({ pid }) => pid).filter(Boolean);
    for (const pid of [...others, ...containers]) attempt(() => process.kill(pid, "SIGKILL"));
    await stack.remount();
    for (const part of [stack.nats, stack.worker, stack.gateway]) await part.start();
    await stack.ready();
    await usable(this.api, this.source);
    await this.#startBeat();
  }

  /** Does something while the worker runs with other settings. The usual worker is back when this resolves. */
  async withWorker(settings: Readonly<Record<string, string>>, action: (worker: TestProcess) => Promise<void>): Promise<void> {
    await this.stack.worker.kill9();
    const other = withSettings(this.stack.worker, settings);
    try {
      await other.start();
      await action(other);
    } finally {
      await other.kill9();
      await this.stack.worker.start();
    }
    await usable(this.api, this.source);
  }

  /** Starts a snapshot call and suspends its copy. Resolves with the pid of the copying program. */
  async startHeldSnapshot(): Promise<number> {
    await this.api.execute(this.source, "yes | head -c 500M > /root/ballast", { timeout: 280 });
    let ended = false;
    void this.calls
      .snapshot(this.source, { name: "cut" })
      .finally(() => {
        ended = true;
      })
      .catch(() => {});
    for (; !ended; await sleep(2)) {
      const pid = copyingProcess(this.stack.dataDir);
      if (pid === undefined) continue;
      process.kill(pid, "SIGSTOP");
      return pid;
    }
    throw new Error("the snapshot was over before its copy was seen");
  }

  /** Asserts that the program of the source runs and nothing is paused, that only the given snapshots and sandboxes exist, and that the host has nothing else. */
  async assertAgreement(snapshots: readonly string[], sandboxes: readonly string[]): Promise<void> {
    const before = await this.#beat();
    await until("the source's program runs", async () => (await this.#beat()) !== before);
    const all = [this.source, ...sandboxes].sort();
    assert.deepEqual(
      (await listOf(this.api)).map(({ id, status }) => `${id} ${status}`).sort(),
      all.map((id) => `${id} running`),
    );
    assert.deepEqual((await this.calls.list()).data.map(({ id }) => id).sort(), [...snapshots].sort());
    const containers = await this.stack.containers();
    assert.deepEqual(containers.map(({ sandboxId }) => sandboxId).sort(), all);
    assert.deepEqual(stoppedProcesses(containers), []);
    await untilHostHas(this.stack.worker, { layers: snapshots.length, roots: all });
  }

  /** Asserts that the one snapshot and these sandboxes are there and nothing else, and one loop device. */
  async assertWhole(sandboxes: readonly string[]): Promise<void> {
    await this.assertAgreement([this.kept.id], sandboxes);
    assert.equal(loopFiles().filter((file) => file.startsWith(`${this.stack.dataDir}/`)).length, 1);
  }

  /** Asserts that a sandbox has the contents of the source. */
  assertFiles(id: string): Promise<void> {
    return assertSameFiles(this.api, id, this.#files);
  }

  async assertRestorable(snapshot: string): Promise<void> {
    const { id } = await this.calls.restored(snapshot);
    await this.assertFiles(id);
    await this.api.delete(id);
  }

  async #startBeat(): Promise<void> {
    await this.api.execute(this.source, `${pythonCommand(beat)} >/dev/null 2>&1 & until [ -s /dev/shm/beat ]; do sleep 0.02; done`);
  }

  async #beat(): Promise<string> {
    return (await this.api.execute(this.source, "cat /dev/shm/beat")).stdout;
  }
}

/** The process that copies the layer of a sandbox of the stack with this folder. */
function copyingProcess(dataDir: string): number | undefined {
  return processIds().find((pid) => commandLineOf(pid).join(" ").match(`^cp .*${dataDir}/.*[.]partial`));
}
