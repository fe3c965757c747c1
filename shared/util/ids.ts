/** Identifiers: a prefix for the kind, then a ULID (sortable by time, 80 random bits). */
import { randomFillSync } from "node:crypto";
import { ulid } from "ulid";

const prefixes = {
  sandbox: "sb_",
  snapshot: "snap_",
  execution: "exec_",
  session: "sess_",
  key: "key_",
  account: "acct_",
  request: "req_",
  worker: "wk_",
  gateway: "gw_",
  stream: "st_",
  line: "line_",
  reservation: "rsv_",
  layer: "layer_",
  move: "mv_",
  home: "home_",
  nats: "nats_",
} as const;

export type IdKind = keyof typeof prefixes;

// The library fetches random bytes once per character, which costs 74 us an id; from a pool it is 2 us.
const pool = new Uint8Array(4_096);
let used = pool.length;

function randomFraction(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return (pool[used++] as number) / 256;
}

/** A new identifier of this kind, such as `sb_01k9…`. */
export function newId(kind: IdKind): string {
  return prefixes[kind] + ulid(undefined, randomFraction).toLowerCase();
}

/** Whether the text has the form of an identifier of this kind. Does not tell whether it exists. */
export function isId(kind: IdKind, text: string): boolean {
  return text.startsWith(prefixes[kind]) && /^[0-9a-z]{26}$/.test(text.slice(prefixes[kind].length));
}

/** The random tail of an id, for generated names such as `sandbox-4k2m9q`. */
export function shortOf(id: string): string {
  return id.slice(-8);
}

/** Maximum length of names, as in the API's schemas. */
const nameLengthMax = 63;

/** A generated name for an object made from another one: `web-clone-4k2m9q1a`. The first part is cut if it is too long. */
export function derivedName(sourceName: string, kind: "clone" | "fork" | "snap", id: string): string {
  const tail = `-${kind}-${shortOf(id)}`;
  return sourceName.slice(0, nameLengthMax - tail.length) + tail;
}

/** The name of one of several objects that were asked for by one name: `web-2`. That name is cut if it is too long. */
export function numberedName(name: string, number: number): string {
  const tail = `-${number}`;
  return name.slice(0, nameLengthMax - tail.length) + tail;
}
