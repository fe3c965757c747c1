/** create, list, find, get, delete, delete-all. */

import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { type PageQuery, pageSizeDefault } from "../../shared/schemas/fields.ts";
import {
  type CreateBody,
  type DeleteBody,
  type DeletedAll,
  type DeletedSandbox,
  type FindQuery,
  type FoundSandboxes,
  isolationOf,
  type SandboxInfo,
  type SandboxPage,
  sandboxDefaults,
  stricter,
} from "../../shared/schemas/sandboxes.ts";
import { newId } from "../../shared/util/ids.ts";
import { wantedImage } from "../../shared/util/image.ts";
import type { Answer, By, Call, Caller, JsonText } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { deleteAll, takeSnapshot } from "./snapshots.ts";
import { paginationOf } from "./views.ts";

/** Above the largest page, so that page and size make one number. */
const pageSizeMax = 1_000;
const foundMax = 100;

/** A sandbox as responses show it. */
export function present(entry: SandboxEntry): SandboxInfo {
  const { id, name, status, image, created_at_ms, cpu, memory, storage, network, error } = entry;
  const shown = { id, name, status, image, created_at: new Date(created_at_ms).toISOString(), cpu, memory, storage, disk_size: storage };
  const { memory_restored = false, memory_reason = null } = entry;
  return { ...shown, network: { access: network }, isolation: isolationOf(entry), memory_restored, memory_reason, ...(error ? { error } : {}) };
}

// Entries are immutable, so the JSON of each is generated once.
const jsonOf = new WeakMap<SandboxEntry, string>();

/** A sandbox as responses show it, as JSON text. */
function presentJson(entry: SandboxEntry): string {
  let json = jsonOf.get(entry);
  if (json === undefined) {
    json = JSON.stringify(present(entry));
    jsonOf.set(entry, json);
  }
  return json;
}

export async function createSandbox(context: GatewayContext, call: Call<unknown, CreateBody>): Promise<Answer<SandboxInfo>> {
  const { body, by, caller, exchange } = call;
  refuseBadImage(context, body.image);
  const isolation = stricter(body.isolation, caller.account.isolation, context.config.isolation);
  const wanted = {
    ...(body.name ? { name: body.name } : {}),
    image: body.image,
    cpu: body.resources?.cpus ?? sandboxDefaults.cpus,
    memory: body.resources?.memory ?? sandboxDefaults.memoryMiB,
    storage: body.resources?.storage ?? sandboxDefaults.storageGB,
    network: body.network?.access ?? sandboxDefaults.access,
    env_vars: body.env_vars ?? {},
    ...(isolation === "strong" ? { isolation } : {}),
    wait: body.wait_for_ready ?? true,
  };
  return context.idempotency.answer(exchange, {
    accountId: by.account_id,
    wanted: { create: wanted },
    run: (reservation_id) =>
      withReservation(context, caller, reservation_id, async () => {
        const call = { ...by, key_id: caller.limitKey, ...wanted, reservation_id, peer: context.peers.peer };
        return context.sandboxes.note(await context.workers.place(call));
      }),
    recover: (reservationId) => madeBefore(context, by, reservationId, wanted.wait ? "create" : undefined),
    show: (entry) => {
      exchange.audited = { target: entry.id };
      return present(entry);
    },
  });
}

/**
 * The sandbox that an earlier attempt has made. Its worker must know it as well: the directory may still list one that the
 * worker has given up, because it could not tell anybody of it.
 *
 * @param verb the call that makes it, if the answer waits until that is done
 * @throws {SandgateError} `unavailable` while that cannot be known
 */
export async function madeBefore(context: GatewayContext, by: By, reservationId: string, verb?: "create" | "restore"): Promise<SandboxEntry | undefined> {
  const entry = await context.sandboxes.settled(reservationId, verb ? context.workers.timeoutOf(verb) : 0);
  if (!entry) return undefined;
  try {
    await context.workers.call(context.workers.worker(entry.worker_id), "sessions", { ...by, sandbox_id: entry.id });
    return entry;
  } catch (error) {
    if (!(error instanceof SandgateError) || error.code !== "not_found") throw error;
    context.sandboxes.noteGone(entry.id);
    return undefined;
  }
}

/** Refuses an invalid image early. The worker checks where it comes from and whether that is allowed. @throws {SandgateError} `unprocessable`. */
export function refuseBadImage({ config }: GatewayContext, image: string | undefined): void {
  if (image !== undefined) wantedImage(image, config);
}

/** Creates a sandbox with a reservation that lasts until it exists and is noted. @throws {SandgateError} also `sandbox_limit_reached`. */
export async function withReservation<T>({ reservations }: GatewayContext, caller: Caller, id: string, make: () => Promise<T>): Promise<T> {
  const reservation = await reservations.reserve(id, caller.limitKey, caller.limits.sandboxes);
  try {
    const made = await make();
    void reservation.settle();
    return made;
  } catch (error) {
    // Settled before the answer is sent: the client may create another sandbox at once.
    await reservation.settle();
    throw error;
  }
}

export function listSandboxes(context: GatewayContext, { caller, query }: Call<PageQuery, unknown>): Answer<SandboxPage> {
  return pageOf(context.sandboxes.shownTo(caller.account.id), query);
}

// A list is replaced when one of its sandboxes changes; until then its pages can be cached.
const pagesOf = new WeakMap<readonly SandboxEntry[], Map<number, JsonText<SandboxPage>>>();
const pagesKeptMax = 16;

function pageOf(list: readonly SandboxEntry[], query: PageQuery): JsonText<SandboxPage> {
  const pages = pagesOf.get(list) ?? new Map<number, JsonText<SandboxPage>>();
  const { page = 1, page_size = pageSizeDefault } = query;
  const name = page * pageSizeMax + page_size;
  const known = pages.get(name);
  if (known) return known;
  const { from, to, pagination } = paginationOf(list.length, query);
  const data = list.slice(from, to).map(presentJson).join(",");
  const body = Buffer.from(`{"data":[${data}],"pagination":${JSON.stringify(pagination)}}\n`) as Uint8Array as JsonText<SandboxPage>;
  if (pages.size >= pagesKeptMax) pages.clear();
  pagesOf.set(list, pages.set(name, body));
  return body;
}

/** The sandboxes that a name may refer to, at most `foundMax`. */
export function findSandboxes(context: GatewayContext, { caller, query }: Call<FindQuery, unknown>): FoundSandboxes {
  const { name } = query;
  const isMeant = (entry: SandboxEntry): boolean => entry.name === name || entry.id.startsWith(name) || entry.id.startsWith(`sb_${name}`);
  const found = context.sandboxes.shownTo(caller.account.id).filter(isMeant);
  return { data: found.slice(0, foundMax).map(present) };
}

export async function getSandbox(context: GatewayContext, { caller, id }: Call<unknown, unknown>): Promise<SandboxInfo> {
  return present(await context.sandboxes.find(id, caller.account.id));
}

export async function deleteSandbox(context: GatewayContext, { exchange, by, id, body }: Call<unknown, DeleteBody>): Promise<DeletedSandbox> {
  const entry = await context.sandboxes.find(id, by.account_id);
  const wanted = { sandboxId: id, attemptId: newId("reservation"), name: body.snapshot_name, quick: false, memory: "skip" } as const;
  const snapshot = body.create_snapshot ? await takeSnapshot(context, by, wanted) : undefined;
  if (snapshot) exchange.audited = { made: [snapshot.id] };
  await deleteOne(context, by, entry);
  const taken = snapshot ? { snapshot_created: true, snapshot_name: snapshot.name } : {};
  return { id, message: "Sandbox deleted", ...taken, storage_deleted: true };
}

export async function deleteAllSandboxes(context: GatewayContext, { by }: Call<unknown, unknown>): Promise<DeletedAll> {
  return await deleteAll("sandbox", context.sandboxes.ofAccount(by.account_id), (entry) => deleteOne(context, by, entry));
}

/** Deletes a sandbox. @throws {SandgateError} `not_found`, `conflict`, `unavailable`. */
export async function deleteOne(context: GatewayContext, by: By, entry: SandboxEntry): Promise<void> {
  try {
    await context.workers.call(context.workers.worker(entry.worker_id), "delete", { ...by, sandbox_id: entry.id });
  } catch (error) {
    // The worker does not know the sandbox, so our directory was out of date.
    if (error instanceof SandgateError && error.code === "not_found") context.sandboxes.noteGone(entry.id);
    throw error;
  }
  context.sandboxes.noteGone(entry.id);
}
