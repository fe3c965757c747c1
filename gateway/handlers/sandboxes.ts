/** create, list, find, get, delete, delete-all. */
import type { Static } from "typebox";
import { Empty, type SandboxEntry, SandboxEntry as SandboxEntrySchema } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { PageQuery } from "../../shared/schemas/pages.ts";
import { type CreateBody, type DeleteBody, type FindQuery, sandboxDefaults } from "../../shared/schemas/sandboxes.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { newId } from "../../shared/util/ids.ts";
import { wantedImage } from "../../shared/util/image.ts";
import type { By, Call, Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import type { Answer } from "../limit/idempotency.ts";
import { deleteAll } from "./delete-all.ts";
import { takeSnapshot } from "./snapshots.ts";

const pageSizeDefault = 20;
/** Above the largest page, so that page and size make one number. */
const pageSizeMax = 1_000;
const foundMax = 100;
const createTimeoutMs = 120_000;
const deleteTimeoutMs = 60_000;

const checkEntry = checker(SandboxEntrySchema);
const checkEmpty = checker(Empty);

/** A sandbox as every response shows it. */
export function present(entry: SandboxEntry): object {
  const { id, name, status, image, created_at_ms, cpu, memory, storage, network, error } = entry;
  const created_at = new Date(created_at_ms).toISOString();
  return { id, name, status, image, created_at, cpu, memory, storage, disk_size: storage, network: { access: network }, ...(error ? { error } : {}) };
}

// Entries never change, only get replaced, so the JSON of each is made once.
const jsonOf = new WeakMap<SandboxEntry, string>();

/** A sandbox as responses show it, as JSON text. */
export function presentJson(entry: SandboxEntry): string {
  let json = jsonOf.get(entry);
  if (json === undefined) {
    json = JSON.stringify(present(entry));
    jsonOf.set(entry, json);
  }
  return json;
}

export async function createSandbox(context: GatewayContext, call: Call<unknown, Static<typeof CreateBody>>): Promise<void> {
  const { body, by, caller, exchange } = call;
  refuseBadImage(context, body.image);
  const wanted = {
    ...(body.name ? { name: body.name } : {}),
    image: body.image,
    cpu: body.resources?.cpus ?? sandboxDefaults.cpus,
    memory: body.resources?.memory ?? sandboxDefaults.memoryMiB,
    storage: body.resources?.storage ?? sandboxDefaults.storageGB,
    network: body.network?.access ?? sandboxDefaults.access,
    env_vars: body.env_vars ?? {},
    wait: body.wait_for_ready ?? true,
  };
  const answerWith = (entry: SandboxEntry): Answer => {
    context.sandboxes.noteCreated(entry);
    exchange.audited = { target: entry.id };
    return { status: 201, body: presentJson(entry) };
  };
  const timeoutMs = createTimeoutMs + context.config.imagePullTimeoutMs;
  await context.idempotency.answer(exchange, {
    accountId: by.account_id,
    wanted: { create: wanted },
    run: (reservation_id) =>
      withReservation(context, caller, reservation_id, async () =>
        answerWith(await context.workers.place({ ...by, key_id: caller.limitKey, ...wanted, reservation_id, peer: context.peers.peer }, checkEntry, timeoutMs)),
      ),
    recover: async (reservationId) => {
      const entry = await context.sandboxes.settled(reservationId, wanted.wait ? timeoutMs : 0);
      return entry && answerWith(entry);
    },
  });
}

/** Before anything is made; where an image is to be had, and whether that place is allowed, the worker finds out. @throws {SandgateError} `unprocessable`. */
export function refuseBadImage({ config }: GatewayContext, image: string | undefined): void {
  if (image !== undefined) wantedImage(image, config);
}

/** Makes a sandbox in a place that is reserved until it is there. @throws {SandgateError} also `sandbox_limit_reached`. */
export async function withReservation<T>({ reservations }: GatewayContext, caller: Caller, id: string, make: () => Promise<T>): Promise<T> {
  const reservation = await reservations.reserve(id, caller.limitKey, caller.limits.sandboxes);
  try {
    const made = await make();
    void reservation.settle();
    return made;
  } catch (error) {
    // Before the answer: whoever reads it may ask for another sandbox at once.
    await reservation.settle();
    throw error;
  }
}

export function listSandboxes(context: GatewayContext, { exchange, caller, query }: Call<Static<typeof PageQuery>, unknown>): void {
  const { page = 1, page_size = pageSizeDefault } = query;
  exchange.sendJsonText(200, pageOf(context.sandboxes.ofAccount(caller.account.id), page, page_size));
}

const isShown = ({ status }: SandboxEntry): boolean => status === "running" || status === "creating";

// A list is made anew when one of its sandboxes changes; until then its pages are the same bytes.
const pagesOf = new WeakMap<readonly SandboxEntry[], Map<number, Uint8Array>>();
const pagesKeptMax = 16;

function pageOf(list: readonly SandboxEntry[], page: number, size: number): Uint8Array {
  const pages = pagesOf.get(list) ?? new Map<number, Uint8Array>();
  const name = page * pageSizeMax + size;
  const known = pages.get(name);
  if (known) return known;
  const shown = list.filter(isShown);
  const data = shown
    .slice((page - 1) * size, page * size)
    .map(presentJson)
    .join(",");
  const pagination = JSON.stringify({ page, page_size: size, total_items: shown.length, total_pages: Math.ceil(shown.length / size) });
  const body = Buffer.from(`{"data":[${data}],"pagination":${pagination}}\n`);
  if (pages.size >= pagesKeptMax) pages.clear();
  pagesOf.set(list, pages.set(name, body));
  return body;
}

/** Those that a name may mean; more of them than this nobody wants to choose from. */
export function findSandboxes(context: GatewayContext, { exchange, caller, query }: Call<Static<typeof FindQuery>, unknown>): void {
  const { name } = query;
  const isMeant = (entry: SandboxEntry): boolean => entry.name === name || entry.id.startsWith(name) || entry.id.startsWith(`sb_${name}`);
  const found = context.sandboxes.ofAccount(caller.account.id).filter((entry) => isShown(entry) && isMeant(entry));
  exchange.sendJson(200, { data: found.slice(0, foundMax).map(present) });
}

export async function getSandbox(context: GatewayContext, { exchange, caller, id }: Call<unknown, unknown>): Promise<void> {
  exchange.sendJson(200, present(await context.sandboxes.find(id, caller.account.id)));
}

export async function deleteSandbox(context: GatewayContext, { exchange, by, id, body }: Call<unknown, Static<typeof DeleteBody>>): Promise<void> {
  const entry = await context.sandboxes.find(id, by.account_id);
  const wanted = { sandboxId: id, attemptId: newId("reservation"), name: body.snapshot_name, quick: false };
  const snapshot = body.create_snapshot ? await takeSnapshot(context, by, wanted) : undefined;
  if (snapshot) exchange.audited = { made: [snapshot.id] };
  await deleteOne(context, by, entry);
  const taken = snapshot ? { snapshot_created: true, snapshot_name: snapshot.name } : {};
  exchange.sendJson(200, { id, message: "Sandbox deleted", ...taken, storage_deleted: true });
}

export async function deleteAllSandboxes(context: GatewayContext, { exchange, by }: Call<unknown, unknown>): Promise<void> {
  exchange.sendJson(200, await deleteAll("sandbox", context.sandboxes.ofAccount(by.account_id), (entry) => deleteOne(context, by, entry)));
}

/** Ends and removes a sandbox. @throws {SandgateError} `not_found`, `conflict`, `unavailable`. */
export async function deleteOne(context: GatewayContext, by: By, entry: SandboxEntry): Promise<void> {
  try {
    await context.workers.call(context.workers.worker(entry.worker_id), "delete", { ...by, sandbox_id: entry.id }, checkEmpty, deleteTimeoutMs);
  } catch (error) {
    // The owner does not know it: our memory was behind.
    if (error instanceof SandgateError && error.code === "not_found") context.sandboxes.noteGone(entry.id);
    throw error;
  }
  context.sandboxes.noteGone(entry.id);
}
