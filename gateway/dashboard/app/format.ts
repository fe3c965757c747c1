/** Formats numbers and times for people. */

const minuteS = 60;
const hourS = 60 * minuteS;
const dayS = 24 * hourS;

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const shortDate = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const whole = new Intl.NumberFormat("en-US");
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const wholeMax = 100_000;

/** A count; numbers of more than five digits are abbreviated. */
export const count = (value: number): string => (value < wholeMax ? whole : compact).format(value);
export const fullTime = (iso: string): string => dateTime.format(new Date(iso));
export const clockTime = (iso: string): string => clock.format(new Date(iso));

/** "1 key", "3 keys". */
export const plural = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : noun.endsWith("x") ? "es" : "s"}`;

/** A short relative time; a date after more than a month. */
export function relativeTime(iso: string, nowMs = Date.now()): string {
  const seconds = Math.round((nowMs - Date.parse(iso)) / 1_000);
  if (seconds < 10) return "just now";
  if (seconds < minuteS) return `${seconds}s ago`;
  if (seconds < hourS) return `${Math.floor(seconds / minuteS)}m ago`;
  if (seconds < dayS) return `${Math.floor(seconds / hourS)}h ago`;
  if (seconds < 31 * dayS) return `${Math.floor(seconds / dayS)}d ago`;
  return shortDate.format(new Date(iso));
}

/** Such as "1.5 KB", in powers of 1024. */
export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${power === 0 || scaled >= 100 ? Math.round(scaled) : Number(scaled.toFixed(1))} ${units[power]}`;
}

/** Formats an amount in MiB, the unit of the API. */
export const mebibytes = (value: number): string => bytes(value * 1024 * 1024);

/** Such as "12 ms", "3.4 s", "2m 5s". */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < hourS ? `${Math.floor(seconds / 60)}m ${seconds % 60}s` : `${Math.floor(seconds / hourS)}h ${Math.floor((seconds % hourS) / 60)}m`;
}

/** A shortened id. Keeps the end, which distinguishes ids created at the same time. */
export function shortId(id: string): string {
  const [kind = "", rest = ""] = id.split("_", 2);
  return rest.length > 10 ? `${kind}_…${rest.slice(-6)}` : id;
}
