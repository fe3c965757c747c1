/** The calls `create` and `delete`. */

import { setImmediate as nextTurn } from "node:timers/promises";
import { ask } from "../../shared/bus/calls.ts";
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { isolationOf } from "../../shared/schemas/sandboxes.ts";
import { newId, shortOf } from "../../shared/util/ids.ts";
import { wantedImage } from "../../shared/util/image.ts";
import type { WorkerContext } from "../context.ts";
import type { Refusal } from "../counters.ts";
import { refuseUnlessServing } from "../phase.ts";
import type { Prepared } from "../sandboxes/pool.ts";
import type { LiveSandbox } from "../sandboxes/registry.ts";
import { entryOf } from "../sandboxes/registry.ts";
import { type RootSource, rootOver, type SandboxRecord } from "../store/records.ts";

/** Makes a sandbox; replies when it runs, or with `wait: false` as soon as the intent to make it is durable. */
export async function create(context: WorkerContext, call: Request<"create">): Promise<SandboxEntry> {
  return entryOf((await makeSandbox(context, call)).record);
}

/** What the files of a sandbox are made from, and whether it starts with memory. */
type MadeFrom = Pick<SandboxRecord, "memory_from" | "memory_restored" | "memory_reason"> & { readonly root: RootSource };

/** Makes a sandbox from an image, or from layers over one. */
export async function makeSandbox(context: WorkerContext, call: Request<"create">, from: MadeFrom = { root: rootOver(call.image) }): Promise<LiveSandbox> {
  const { root } = from;
  // What comes over NATS is not believed to have been checked.
  if (root.over !== undefined) wantedImage(root.over, context.config);
  if (context.stalls.suspect) await refuseAbandoned(context, call);
  if (isolationOf(call) === "strong" && !context.host.hasStrong) throw errors.noStrongWorker();
  refuseWhenFull(context);
  const done = context.counters.creates.start();
  const { sandbox, made } = await begin(context, call, from);
  void made.then(done, () => {}); // A failure is in the record and the log.
  await Promise.all([context.usage.makeRoom(), call.wait ? made : undefined]);
  return sandbox;
}

/** A sandbox that the directory knows, and the end of its making. */
interface Begun {
  readonly sandbox: LiveSandbox;
  readonly made: Promise<void>;
}

async function begin(context: WorkerContext, call: Request<"create">, from: MadeFrom): Promise<Begun> {
  const { sandboxes, pool } = context;
  // Processes of a snapshot continue in a container of their own.
  const prepared = from.memory_from ? undefined : pool.take(call, from.root.over);
  const isReady = call.wait && prepared?.image !== undefined && prepared.image === from.root.over;
  const ready = isReady ? await promiseReady(context, call, from, prepared) : undefined;
  if (ready) return { sandbox: ready, made: Promise.resolve() };
  const waiting = isReady ? undefined : prepared;
  const sandbox = sandboxes.begin({ ...recordOf(context, call, waiting?.id ?? newId("sandbox")), ...from });
  // Podman is told first.
  const known = nextTurn().then(() => announce(context, sandbox, call));
  // What runs in it is prepared meanwhile.
  const made = sandboxes.exclusive(sandbox.record.id, () => make(context, { sandbox, prepared: waiting }, call, known));
  const settled = made.catch(() => {});
  try {
    await known;
  } catch (error) {
    await settled;
    throw error;
  }
  return { sandbox, made };
}

/**
 * Makes what waits with its files already the sandbox. That takes less than to note that it is being made, so all of it is to promise it.
 *
 * @returns undefined where it could not become that, and nothing of it is left
 */
async function promiseReady(context: WorkerContext, call: Request<"create">, from: MadeFrom, prepared: Prepared): Promise<LiveSandbox | undefined> {
  const { sandboxes, lifecycle, stalls, log } = context;
  const { id } = prepared;
  const sandbox = sandboxes.begin({ ...recordOf(context, call, id), ...from });
  try {
    const sure = async (): Promise<void> => (stalls.suspect ? refuseAbandoned(context, call) : undefined);
    const start = (): Promise<boolean> => sandboxes.exclusive(id, () => lifecycle.startReady(sandbox, prepared, sure));
    if (await logged(context, sandbox, async () => ((await start()) ? { wasPrepared: true } : undefined))) return sandbox;
  } catch (err) {
    // The directory may list it all the same.
    await sandboxes.remove(sandbox).catch((cause) => log.error({ err: cause, sandbox: id }, "a failure could not be recorded"));
    throw err;
  }
  sandboxes.forget(sandbox);
  return undefined;
}

/** A sandbox, and the container that waits to become it, if there is one. */
interface Making {
  readonly sandbox: LiveSandbox;
  readonly prepared: Prepared | undefined;
}

/** From now on gateways count the sandbox, so nothing slow may come before. What nobody waits for is promised as soon as they do. */
async function announce({ sandboxes, log }: WorkerContext, sandbox: LiveSandbox, { wait }: Request<"create">): Promise<void> {
  try {
    await sandboxes.announce(sandbox);
    if (!wait) await sandboxes.acknowledge(sandbox);
  } catch (error) {
    await sandboxes.remove(sandbox).catch((err) => log.error({ err, sandbox: sandbox.record.id }, "an unannounced sandbox could not be removed"));
    throw error;
  }
}

function recordOf({ workerId }: WorkerContext, call: Request<"create">, id: string): SandboxRecord {
  return {
    id,
    name: call.name ?? `sandbox-${shortOf(id)}`,
    account_id: call.account_id,
    key_id: call.key_id,
    worker_id: workerId,
    status: "creating",
    image: call.image,
    created_at_ms: Date.now(),
    cpu: call.cpu,
    memory: call.memory,
    storage: call.storage,
    network: call.network,
    env_vars: call.env_vars,
    acknowledged: false,
    ...(call.isolation ? { isolation: call.isolation } : {}),
    ...(call.reservation_id ? { reservation_id: call.reservation_id } : {}),
  };
}

/** Ends a sandbox and everything in it. Replies when it is gone. */
export async function remove(context: WorkerContext, call: Request<"delete">): Promise<object> {
  const sandbox = context.sandboxes.owned(call.sandbox_id, call.account_id);
  if (sandbox.record.status === "creating") throw new SandgateError("conflict", "the sandbox is still being created");
  await context.sandboxes.exclusive(call.sandbox_id, async () => {
    // Somebody else's deletion may have been first in line.
    await context.lifecycle.delete(context.sandboxes.owned(call.sandbox_id, call.account_id));
  });
  context.log.info({ event: "sandbox_deleted", sandbox: call.sandbox_id }, "a sandbox was deleted");
  return {};
}

/** @param known when the sandbox is announced; if that fails, it is forgotten again */
async function make(context: WorkerContext, { sandbox, prepared }: Making, call: Request<"create">, known: Promise<void>): Promise<void> {
  const { log, lifecycle, sandboxes, pool } = context;
  const { id, root } = sandbox.record;
  try {
    await logged(context, sandbox, async () => {
      await lifecycle.start(sandbox, known, prepared);
      // One that cannot have the files of the sandbox was replaced.
      const wasPrepared = prepared !== undefined && prepared.container.id === sandbox.container?.id;
      // What a snapshot has changed says nothing of others with its image.
      if (prepared && !wasPrepared && root?.layers.length === 0) pool.passBy(call.image);
      return { wasPrepared };
    });
  } catch (thrown) {
    const error = SandgateError.from(thrown);
    // What is being announced must not appear after it was removed.
    const isKnown = await known.then(
      () => true,
      () => false,
    );
    if (!isKnown) throw error;
    const settled = call.wait ? sandboxes.remove(sandbox) : sandboxes.apply(sandbox, "failed", { error: error.message });
    await settled.catch((err) => log.error({ err, sandbox: id }, "a failure could not be recorded"));
    throw error;
  }
}

/** What became a sandbox: whether that had waited in the pool. */
interface Made {
  readonly wasPrepared: boolean;
}

/** Logs how the making of a sandbox ends. @param work resolves with undefined where nothing was made, which is not the end yet */
async function logged({ log }: WorkerContext, { record: { id, image } }: LiveSandbox, work: () => Promise<Made | undefined>): Promise<Made | undefined> {
  try {
    const made = await work();
    if (made) log.info({ event: "sandbox_created", sandbox: id, image, prepared: made.wasPrepared }, "a sandbox was created");
    return made;
  } catch (err) {
    log.warn({ err, event: "sandbox_create_failed", sandbox: id }, "a sandbox could not be created");
    throw err;
  }
}

/** A gateway that is gone may have been replaced by one that makes the sandbox again. */
async function refuseAbandoned({ bus }: WorkerContext, { peer, reservation_id }: Request<"create">): Promise<void> {
  if (!peer || !reservation_id) return;
  const { ids } = await ask(bus, "held", peer, { ids: [reservation_id] });
  if (ids.length === 0) throw new SandgateError("unavailable", "nobody waits for this sandbox any more");
}

/** For the beginning of a call, before anything is done. The refusal is counted. @throws {SandgateError} `unavailable`, `insufficient_storage` */
export function refuseWhenFull(context: WorkerContext): void {
  const { sandboxes, store, config, usage, counters } = context;
  const refuse = (reason: Refusal, message: string, code: "unavailable" | "insufficient_storage" = "unavailable"): never => {
    counters.refuse(reason);
    throw new SandgateError(code, message, { refused: true });
  };
  if (store.cordoned) refuse("cordoned", "the worker takes no new sandboxes");
  refuseUnlessServing(context);
  if (sandboxes.size >= config.sandboxesMax) refuse("sandboxes", "the worker has no room for another sandbox");
  if (usage.host.memoryFreeBytes < config.memoryFloorBytes) refuse("memory", "the worker has too little free memory for another sandbox");
  const shortage = usage.diskShortage();
  if (shortage) refuse("disk", shortage, "insufficient_storage");
}
