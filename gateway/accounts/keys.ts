/** Creates, finds and revokes the API keys of accounts, and records their use. */
import { hash as digest, randomBytes } from "node:crypto";
import type { BucketMirror } from "../../shared/bus/mirror.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { KeyRecord, KeyUse } from "../../shared/schemas/records.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import { newestFirst } from "../../shared/util/newest-first.ts";
import type { Caller } from "../call.ts";
import type { Records } from "./records.ts";

/** The most revoked keys kept per account; beyond it, those revoked first are removed early. */
export const revokedMax = 100;
/** 36 bytes are 48 characters of base64url. */
const keyBytes = 36;

/** The SHA-256 of a key in hex, which is stored instead of the key. */
export function hashKey(apiKey: string): string {
  return digest("sha256", apiKey, "hex");
}

/** The part of a key that may be shown and logged. */
export function keyPrefix(apiKey: string): string {
  return apiKey.slice(0, 10);
}

/** All keys of an account, including revoked ones, newest first. */
export function keysOf({ keys }: Records, accountId: string): KeyRecord[] {
  return newestFirst([...keys.values()].filter((key) => key.account_id === accountId));
}

export function isActive({ revoked_at_ms }: KeyRecord): boolean {
  return revoked_at_ms === undefined;
}

/**
 * Creates a key. Resolves when it is stored. The key itself is only in the result.
 *
 * @throws {SandgateError} `conflict` when the account has `activeMax` active keys, counted across all gateways.
 */
export async function createKey(records: Records, accountId: string, name: string, activeMax: number): Promise<{ record: KeyRecord; apiKey: string }> {
  await records.keys.caughtUp();
  await forgetFirstRevoked(records, accountId);
  const before = new Set(activeHashes(records, accountId));
  if (before.size >= activeMax) throw tooMany(activeMax);
  const apiKey = `sg_${randomBytes(keyBytes).toString("base64url")}`;
  const hash = hashKey(apiKey);
  const record: KeyRecord = { id: newId("key"), account_id: accountId, name, prefix: keyPrefix(apiKey), created_at_ms: Date.now() };
  await records.keys.put(hash, record);
  if (await isOneTooMany(records, hash, accountId, before, activeMax)) {
    await records.keys.delete(hash);
    throw tooMany(activeMax);
  }
  return { record, apiKey };
}

/** Removes a key and its last use from the records. */
export async function forgetKey(records: Records, hash: string, { id }: KeyRecord): Promise<void> {
  await records.keys.delete(hash);
  if (records.keyUse.get(id)) await records.keyUse.delete(id);
}

/** Makes room for another revoked key. */
async function forgetFirstRevoked(records: Records, accountId: string): Promise<void> {
  const revoked = [...records.keys.entries()].filter(([, key]) => key.account_id === accountId && !isActive(key));
  if (revoked.length < revokedMax) return;
  revoked.sort(([, one], [, other]) => (one.revoked_at_ms ?? 0) - (other.revoked_at_ms ?? 0));
  for (const [hash, key] of revoked.slice(0, revoked.length - revokedMax + 1)) await forgetKey(records, hash, key);
}

/**
 * Whether a key that was just stored exceeds `activeMax`. For keys created concurrently, on any gateway, the revision
 * numbers of the NATS server decide which came first, so every gateway reaches the same result.
 */
async function isOneTooMany(records: Records, hash: string, accountId: string, before: ReadonlySet<string>, activeMax: number): Promise<boolean> {
  await records.keys.caughtUp();
  const active = activeHashes(records, accountId);
  if (active.length <= activeMax) return false;
  const mine = await records.keys.readVersion(hash);
  let earlier = 0;
  for (const other of active) {
    if (other === hash) continue;
    // Keys that existed before may have a high revision only because an operator changed them since.
    if (before.has(other)) earlier++;
    else if (mine && ((await records.keys.readVersion(other))?.revision ?? Number.POSITIVE_INFINITY) < mine.revision) earlier++;
  }
  return earlier >= activeMax;
}

function activeHashes({ keys }: Records, accountId: string): string[] {
  return [...keys.entries()].flatMap(([hash, key]) => (key.account_id === accountId && isActive(key) ? [hash] : []));
}

const tooMany = (max: number): SandgateError =>
  new SandgateError("conflict", `An account can have at most ${max} active key${max === 1 ? "" : "s"}; revoke one first.`);

/**
 * Finds a key by its id, with the hash under which it is stored.
 *
 * @param accountId restricts the search to this account; absent for operators
 * @throws {SandgateError} `not_found`
 */
export async function findKey({ keys }: Records, id: string, accountId?: string): Promise<{ hash: string; key: KeyRecord }> {
  const look = () => [...keys.entries()].find(([, key]) => key.id === id && (accountId === undefined || key.account_id === accountId));
  let found = look();
  if (!found) {
    // Another gateway may have just created it.
    await keys.certain();
    found = look();
  }
  if (!found) throw keyNotFound(id);
  return { hash: found[0], key: found[1] };
}

/** Revokes a key permanently. An already revoked key is left unchanged. @throws {SandgateError} `not_found`. */
export async function revokeKey(records: Records, id: string, accountId?: string): Promise<KeyRecord> {
  const { hash } = await findKey(records, id, accountId);
  const stored = await records.keys.change(hash, (key) => (isActive(key) ? { ...key, revoked_at_ms: Date.now() } : key));
  if (!stored) throw keyNotFound(id);
  return stored;
}

export const keyNotFound = (id: string): SandgateError => new SandgateError("not_found", `API key not found: ${id.slice(0, 64)}`, { reason: "no_such_key" });

const everyMs = 60_000;
const rememberedMax = 10_000;

/** Records when keys were last used, at most once a minute per key across all gateways. */
export class KeyUses {
  readonly #uses: BucketMirror<KeyUse>;
  readonly #log: Logger;
  /** When this gateway last wrote each key's use. */
  readonly #notedAtMs = new Map<string, number>();

  constructor(uses: BucketMirror<KeyUse>, log: Logger) {
    this.#uses = uses;
    this.#log = log;
  }

  /** Records a use of the caller's key. */
  note({ key }: Caller): void {
    if (!key) return;
    const now = Date.now();
    if (now - (this.#notedAtMs.get(key.id) ?? 0) < everyMs) return;
    if (this.#notedAtMs.size >= rememberedMax) this.#notedAtMs.clear();
    this.#notedAtMs.set(key.id, now);
    if (now - (this.#uses.get(key.id)?.used_at_ms ?? 0) < everyMs) return;
    this.#uses.put(key.id, { used_at_ms: now }).catch((err) => this.#log.debug({ err }, "could not record the use of a key"));
  }
}
