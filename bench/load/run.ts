/** One load: prepares sandboxes, sends, removes everything, and says what was measured. */
import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { messageOf } from "../../shared/cli/failures.ts";
import { Sandgate } from "../../shared/client/index.ts";
import type { SandboxHandle } from "../../shared/client/sandbox.ts";
import { seededRandom } from "../../test/helpers/random.ts";
import { Interrupted } from "../arguments.ts";
import { thisComputer } from "../computer.ts";
import { inParallel } from "../measure.ts";
import { timeoutDefaultS } from "./actions.ts";
import { Fleet } from "./fleet.ts";
import { GeneratorWatch } from "./generator.ts";
import { findLimit } from "./limit.ts";
import type { LoadOptions } from "./options.ts";
import { Recorder } from "./recorder.ts";
import { type LimitResult, type Result, resultFormat, type Sending } from "./result.ts";
import { atRate, ofPhase, type Schedule } from "./schedule.ts";
import { Sender } from "./sender.ts";
import { needsSandbox, type Workload } from "./workload.ts";

const preparedAtOnce = 4;
const progressMs = 500;
const setupTimeoutS = 300;

/** What is shown while a load runs. */
export interface Show {
  task<T>(title: string, object: string, work: (say: (text: string) => void) => Promise<T>): Promise<T>;
}

interface Loaded {
  readonly sendings: Sending[];
  readonly recorder: Recorder;
  /** Of the sendings, what the result says something about, if not all. */
  readonly judged?: Sending[];
  readonly limit?: LimitResult;
}

/** @throws {Error} if the deployment cannot be used at all; then nothing is left over. What is left over otherwise is in the result */
export async function runLoad(options: LoadOptions, show: Show, signal: AbortSignal): Promise<Result> {
  const { baseUrl, apiKey, workload, mix, seed } = options;
  setMaxListeners(0, signal);
  const runId = randomBytes(4).toString("hex");
  const [startedAt, machine] = [new Date(), thisComputer()];
  const remover = new Sandgate({ baseUrl, apiKey, maxRetries: 0, onRateLimited: () => undefined });
  const fleet = new Fleet(runId, remover, workload.sandbox);
  const watch = new GeneratorWatch();
  // Fails before anything is made if there is no such deployment, or the key is not one of its.
  await remover.sandboxes.list({ pageSize: 1, timeoutMs: timeoutDefaultS * 1_000, signal }).page();
  let loaded: Loaded = { sendings: [], recorder: new Recorder() };
  let failure: unknown;
  try {
    const sandboxes = await prepare(fleet, remover, workload, show, signal);
    const random = seededRandom(seed);
    const connect = (): Sandgate => new Sandgate({ baseUrl, apiKey, maxRetries: 0 });
    const sender = new Sender({ connect, fleet, sandboxes, steps: workload.steps, inFlightMax: options.inFlightMax, random, signal });
    loaded = await watch.during(() => send(options, sender, loaded, show, signal));
  } catch (error) {
    failure = error;
  }
  const leftOver = await show.task("Removing", `sandboxes named ${fleet.label}*`, () => fleet.removeAll(options.cleanUpMs));
  // What is left over matters more than why the load ended, which is told with it.
  if (failure !== undefined && !signal.aborted && leftOver.length === 0) throw failure;
  const { sendings, recorder, limit, judged = sendings } = loaded;
  const reason: unknown = signal.aborted ? signal.reason : failure;
  const isFailed = reason !== undefined && !(reason instanceof Interrupted);
  const messages = { ...recorder.messages, ...(isFailed ? { failed: messageOf(reason) } : {}) };
  const durationS = (Date.now() - startedAt.getTime()) / 1_000;
  const facts = {
    format: resultFormat,
    runId,
    startedAt: startedAt.toISOString(),
    durationS,
    target: baseUrl,
    mix,
    about: workload.about,
    seed,
    machine,
  } as const;
  const measured = { sendings, generator: watch.result(judged), rows: recorder.results(), messages, ...(limit ? { limit } : {}) };
  return { ...facts, load: loadText(options), ...measured, isComplete: reason === undefined, leftOver };
}

/** How the load is sent, in words. */
function loadText({ workload, rate, durationMs, isLimitWanted }: LoadOptions): string {
  if (workload.phases) return workload.phases.map(({ name, count }) => `${count} ${name}`).join(", ");
  return isLimitWanted ? `looking for the limit from ${rate}/s, ${durationMs / 1_000} s each` : `${rate}/s for ${durationMs / 1_000} s`;
}

async function prepare(fleet: Fleet, client: Sandgate, workload: Workload, show: Show, signal: AbortSignal): Promise<SandboxHandle[]> {
  const count = workload.steps.some(needsSandbox) ? (workload.sandboxes ?? 1) : 0;
  const sandboxes: SandboxHandle[] = [];
  if (count === 0) return sandboxes;
  const one = async (): Promise<number> => {
    signal.throwIfAborted();
    const sandbox = await fleet.create(client, setupTimeoutS * 1_000);
    sandboxes.push(sandbox);
    const { setup } = workload;
    if (setup === undefined) return 0;
    const { exit_code, stderr } = await sandbox.execute(setup, { timeout: setupTimeoutS, signal });
    if (exit_code !== 0) throw new Error(`the set-up command of the workload ended with ${exit_code}: ${stderr.trim().slice(-500)}`);
    return 0;
  };
  // All are waited for, so that none is created behind the removal.
  const all = Array.from({ length: preparedAtOnce }, (_, index) => inParallel(1, Math.ceil((count - index) / preparedAtOnce), one));
  await show.task("Preparing", `${count} sandbox${count === 1 ? "" : "es"}`, async () => {
    const failed = (await Promise.allSettled(all)).find((made) => made.status === "rejected");
    if (failed) throw failed.reason;
  });
  return sandboxes;
}

async function send(options: LoadOptions, sender: Sender, { sendings, recorder }: Loaded, show: Show, signal: AbortSignal): Promise<Loaded> {
  const { workload, rate, durationMs } = options;
  if (options.isLimitWanted) {
    const limit = await findLimit(options, (one) => sendOne(sender, atRate(one, durationMs), show, new Recorder()), signal);
    return { sendings: limit.sendings, judged: limit.judged, recorder: limit.last, limit: limit.result };
  }
  const schedules = workload.phases?.map((phase) => [ofPhase(phase), `${phase.name}: `] as const) ?? [[atRate(rate, durationMs), ""] as const];
  recorder.expect(schedules.flatMap(([, prefix]) => workload.steps.map(({ name }) => prefix + name)));
  for (const [schedule, prefix] of schedules) {
    sendings.push((await sendOne(sender, schedule, show, recorder, prefix)).sending);
    signal.throwIfAborted();
  }
  return { sendings, recorder };
}

/** What one schedule has brought. */
export interface Sent {
  readonly sending: Sending;
  readonly recorder: Recorder;
}

async function sendOne(sender: Sender, schedule: Schedule, show: Show, recorder: Recorder, prefix = ""): Promise<Sent> {
  recorder.begin();
  const sending = await show.task("Sending", schedule.name, async (say) => {
    const tell = (): void => {
      const { p50, p99 } = { p50: recorder.all.percentile(0.5), p99: recorder.all.percentile(0.99) };
      const { ended, failures, refused } = recorder;
      const told = [`${ended} of ${schedule.arrivalsMs.length} done`, `${sender.inFlight} under way`, `${failures} failed`];
      if (refused > 0) told.push(`${refused} of them refused (429)`);
      say([...told, `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`].join(", "));
    };
    const timer = setInterval(tell, progressMs);
    try {
      return await sender.send(schedule, recorder, prefix);
    } finally {
      clearInterval(timer);
    }
  });
  return { sending, recorder };
}
