/**
 * Finds terminal queries in output. Programs ask a terminal for its type, cursor position and the like, and it answers as if
 * somebody had typed. The queries are those of xterm's "Control Sequences", kitty's protocols and iTerm2's codes.
 */

/** Longer sequences are not queries. */
const sequenceBytesMax = 8 * 1024;

const bel = 0x07;
const enquiry = 0x05;
const escapeCode = 0x1b;
/** First byte of the control characters U+0080 to U+009F in UTF-8. */
const c1Lead = 0xc2;
const deletion = 0x7f;
const cancelling = (byte: number): boolean => byte === 0x18 || byte === 0x1a;

type Kind = "csi" | "osc" | "dcs" | "apc" | "other";

/** The kind of sequence by the character that follows ESC. C1 characters stand for both. */
const introducers: Readonly<Record<string, Kind>> = { "[": "csi", "]": "osc", P: "dcs", _: "apc", X: "other", "^": "other" };

/** Prefix, intermediate and final characters of the CSI sequences that are answered whatever their parameters. */
const askingControls: ReadonlySet<string> = new Set(
  // Device type, state, modes, version, keyboard protocols.
  'c >c =c n ?n x $p ?$p >q ?u ?m $w $u &u "v +p'
    .split(" ")
    // Checksums, the locator, colors, attributes, graphics.
    .concat("*y '| #R #| ?S".split(" ")),
);
/** CSI … t sequences that report on the window; other numbers change something. */
const windowReports: ReadonlySet<string> = new Set(["11", "13", "14", "15", "16", "18", "19", "20", "21"]);

/** A piece of output: one query, or bytes without any. */
export interface Part {
  readonly bytes: Uint8Array;
  readonly isQuestion: boolean;
}

type Found = { readonly end: number; readonly isQuestion: boolean } | "incomplete";

export class QuestionFinder {
  #held: Uint8Array = new Uint8Array();

  /** Splits the bytes into parts. An incomplete sequence is held back until the rest arrives. */
  read(bytes: Uint8Array): Part[] {
    const all = this.#held.length === 0 ? bytes : together(this.#held, bytes);
    const parts: Part[] = [];
    let plainFrom = 0;
    let at = nextControl(all, 0);
    while (at < all.length) {
      const found = sequenceAt(all, at);
      if (found === "incomplete" && all.length - at <= sequenceBytesMax) break;
      const { end, isQuestion } = found === "incomplete" ? { end: at + 1, isQuestion: false } : found;
      if (isQuestion) {
        if (at > plainFrom) parts.push({ bytes: all.subarray(plainFrom, at), isQuestion: false });
        parts.push({ bytes: all.subarray(at, end), isQuestion: true });
        plainFrom = end;
      }
      at = nextControl(all, end);
    }
    if (at > plainFrom) parts.push({ bytes: all.subarray(plainFrom, at), isQuestion: false });
    this.#held = all.slice(at);
    return parts;
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  /** Releases the bytes held back. */
  rest(): Uint8Array {
    const rest = this.#held;
    this.#held = new Uint8Array();
    return rest;
  }
}

function together(one: Uint8Array, other: Uint8Array): Uint8Array {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}

/** The position of the next character that may start a query. */
function nextControl(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === escapeCode || byte === c1Lead || byte === enquiry) return at;
  }
  return bytes.length;
}

function sequenceAt(bytes: Uint8Array, at: number): Found {
  if (bytes[at] === enquiry) return { end: at + 1, isQuestion: true };
  const isShort = bytes[at] === c1Lead;
  let next = at + 1;
  // Terminals execute control characters within a sequence and then continue it.
  while (!isShort && isInner(bytes[next])) next++;
  const byte = bytes[next];
  if (byte === undefined) return "incomplete";
  const introducer = isShort ? String.fromCharCode(byte - 0x40) : String.fromCharCode(byte);
  // The old query for the device type.
  if (introducer === "Z") return { end: next + 1, isQuestion: true };
  const kind = (isShort && (byte < 0x80 || byte > 0x9f)) || !Object.hasOwn(introducers, introducer) ? undefined : introducers[introducer];
  if (!kind) return { end: at + 1, isQuestion: false };
  return kind === "csi" ? control(bytes, next + 1) : text(bytes, next + 1, kind);
}

const isInner = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte < 0x20 && byte !== escapeCode && byte !== enquiry && !cancelling(byte)) || byte === deletion);

/** @param from the first byte after the introducer */
function control(bytes: Uint8Array, from: number): Found {
  let content = "";
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (isInner(byte) || byte === enquiry) continue;
    if (byte < 0x20 || byte > 0x7e) return { end: at, isQuestion: false };
    content += String.fromCharCode(byte);
    if (byte >= 0x40) return { end: at + 1, isQuestion: asksControl(content) };
  }
  return "incomplete";
}

function asksControl(content: string): boolean {
  const [, prefix = "", parameters = "", rest = ""] = /^([<=>?]*)([0-9:;]*)([ -/]*[@-~])$/.exec(content) ?? [];
  if (prefix === "" && rest === "t") return windowReports.has(parameters.split(";")[0]?.replace(/^0+/, "") ?? "");
  return askingControls.has(prefix + rest);
}

/** A sequence that contains text. @param from the first byte after the introducer */
function text(bytes: Uint8Array, from: number, kind: Exclude<Kind, "csi">): Found {
  const isWrapped = kind === "dcs" && "tmux;".split("").every((letter, index) => bytes[from + index] === letter.charCodeAt(0));
  const found = (at: number, end: number): Found => ({ end, isQuestion: isWrapped || asksText(kind, latin(bytes.subarray(from, at))) });
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === bel && kind === "osc") return found(at, at + 1);
    if (cancelling(byte)) return { end: at + 1, isQuestion: false };
    if (byte === c1Lead && bytes[at + 1] === 0x9c) return found(at, at + 2);
    if (byte !== escapeCode) continue;
    const next = bytes[at + 1];
    if (next === undefined) return "incomplete";
    if (isWrapped && next === escapeCode) at++;
    // ESC ends the text, whatever follows. Some terminals then treat it as complete.
    else return found(at, next === 0x5c ? at + 2 : at);
  }
  return "incomplete";
}

function asksText(kind: Kind, content: string): boolean {
  if (kind === "dcs") return /^(@kitty|[0-9;:<=>?]*(\+q|\$q|\+Q))/.test(content);
  if (kind === "apc") return content.startsWith("G") && !/[G,]q=2([,;]|$)/.test(content);
  if (kind !== "osc") return false;
  const [number = "", ...fields] = content.split(";");
  return (
    fields.some((field) => field === "?" || field.endsWith("=?") || /^(.*:)?type=read\b/.test(field)) ||
    number === "60" ||
    number === "61" ||
    (number === "1337" && /^(Report|Request|Capabilities)/.test(fields[0] ?? ""))
  );
}

function latin(bytes: Uint8Array): string {
  let content = "";
  for (const byte of bytes) content += String.fromCharCode(byte);
  return content;
}
