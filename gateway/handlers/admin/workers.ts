/** The operator's calls about workers: who is there, who takes no new sandboxes, who will never come back. */

import type { WorkerPresence } from "../../../shared/bus/heartbeat.ts";
import { SandgateError } from "../../../shared/errors.ts";
import { errors } from "../../../shared/known-errors.ts";
import type { DrainBody, DrainedWorker, ForgottenWorker, Worker, Workers } from "../../../shared/schemas/admin/fleet.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";
import { hostView } from "../views.ts";

/** Every worker that is there, and those that are gone but still have sandboxes in the directory. */
export function listWorkers(context: GatewayContext): Workers {
  const present = new Map(context.workers.workers().map(({ worker }) => [worker.id, presentView(worker)]));
  const gone = [...context.sandboxes.countsByWorker()].filter(([id]) => !present.has(id));
  const views = [...present.values(), ...gone.map(([id, sandboxes]) => ({ id, present: false as const, sandboxes }))];
  return { data: views.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** Lets a worker take new sandboxes no more, or again. What it has goes on. @throws {SandgateError} `not_found`. */
export async function drainWorker(context: GatewayContext, { exchange, by, id, body }: Call<unknown, DrainBody>): Promise<DrainedWorker> {
  const on = body.on ?? true;
  exchange.audited = { change: { on } };
  if (!context.workers.has(id)) throw errors.notFound("worker", id);
  await context.workers.call(context.workers.worker(id), "drain", { request_id: by.request_id, on });
  return { id, cordoned: on, message: on ? "The worker takes no new sandboxes" : "The worker takes new sandboxes again" };
}

/**
 * Takes the sandboxes of a worker that is gone out of the directory, so that they count for nobody's limit. Its machine cannot
 * come back under this id; another one can use it.
 *
 * @throws {SandgateError} `conflict` when the worker is there, `not_found` when nothing is known of it
 */
export async function forgetWorker({ workers, claims, sandboxes }: GatewayContext, { id }: Call<unknown, unknown>): Promise<ForgottenWorker> {
  const refuse = (): never => {
    throw new SandgateError("conflict", "This worker is there; stop it first.");
  };
  const refuseIfPresent = (): void => {
    if (workers.has(id)) refuse();
  };
  refuseIfPresent();
  await claims.caughtUp();
  const hasEntries = (await sandboxes.ofWorker(id)).length > 0;
  if (!hasEntries && !claims.has(id)) throw errors.notFound("worker", id);
  // First, so that nobody writes an entry anew after it was removed.
  await claims.forget(id, refuse);
  return { id, message: "Worker forgotten", forgotten_sandboxes: await sandboxes.forgetWorker(id, refuseIfPresent) };
}

function presentView(worker: WorkerPresence): Worker {
  const { id, draining, cordoned, sandboxes, sandboxes_max, memory_free_bytes, disk_free_bytes, load_per_cpu } = worker;
  return {
    id,
    present: true,
    draining,
    cordoned: cordoned ?? false,
    sandboxes,
    sandboxes_max,
    memory_free_bytes,
    disk_free_bytes,
    load_per_cpu,
    ...hostView(worker),
  };
}
