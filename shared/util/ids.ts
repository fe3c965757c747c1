/** Identifiers: a prefix for the kind, then a ULID (sortable by time, 80 random bits). */
import { randomFillSync } from "node:crypto";

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

/** Crockford's base 32, in lower case. */
const letters = "0123456789abcdefghjkmnpqrstvwxyz";
/** All pairs of letters, each of which is ten bits: every call gets an id, so that is put together from few pieces. */
const pairs = Array.from({ length: 1_024 }, (_, bits) => `${letters[bits >> 5]}${letters[bits & 31]}`);
const pairOf = (bits: number): string => pairs[bits & 1_023] as string;

/** Random numbers are fetched many at a time. */
const pool = new Uint16Array(2_048);
let used = pool.length;
/** Of 80 bits. */
const randomPairs = 8;

function randomText(): string {
  if (used + randomPairs > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  let text = "";
  for (let pair = 0; pair < randomPairs; pair++) text += pairOf(pool[used++] as number);
  return text;
}

let told = { ms: -1, text: "" };

/** The time in 50 bits. Most calls come in the same millisecond as the one before. */
function timeText(ms: number): string {
  if (ms !== told.ms) {
    let text = "";
    for (let left = ms, pair = 0; pair < 5; pair++, left = Math.floor(left / 1_024)) text = pairOf(left % 1_024) + text;
    told = { ms, text };
  }
  return told.text;
}

/** A new identifier of this kind, such as `sb_01k9…`. */
export function newId(kind: IdKind): string {
  return prefixes[kind] + timeText(Date.now()) + randomText();
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
