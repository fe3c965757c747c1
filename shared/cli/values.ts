/** Parsing of option values. */
import { type MemoryWish, memoryWishes } from "../memory.ts";
import type { Isolation } from "../schemas/sandboxes.ts";
import { UsageError } from "./failures.ts";
import { ownVariable } from "./settings.ts";

export function whole(option: string, min: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) < min) throw new UsageError(`${option} takes a whole number from ${min}`);
    return Number(text);
  };
}

const units: Readonly<Record<string, number>> = { "": 1, m: 1, mi: 1, g: 1_024, gi: 1_024 };

/** MiB: `512`, `512m`, `2g`. */
export function memory(text: string): number {
  const [, number = "", unit = ""] = /^(\d{1,7})([a-z]{0,2}?)b?$/.exec(text.toLowerCase()) ?? [];
  const factor = units[unit];
  if (!number || factor === undefined) throw new UsageError("--memory takes MiB, such as 512, 512m or 2g");
  return Number(number) * factor;
}

/** `NAME=VALUE`; `NAME` alone takes the value from the user's environment. */
export function variable(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf("=");
  const name = at < 0 ? text : text.slice(0, at);
  const value = at < 0 ? ownVariable(name) : text.slice(at + 1);
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new UsageError(`--env takes NAME=VALUE, not ${JSON.stringify(text)}`);
  return value === undefined ? before : { ...before, [name]: value };
}

export function isolation(text: string): Isolation {
  if (text !== "standard" && text !== "strong") throw new UsageError("--isolation takes standard or strong");
  return text;
}

export function memoryWish(option: string): (text: string) => MemoryWish {
  return (text) => {
    const wish = memoryWishes.find((one) => one === text);
    if (!wish) throw new UsageError(`${option} takes require, prefer or skip`);
    return wish;
  };
}

const spanUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds: a time span such as `500ms`, `90s`, `10m`; at least one millisecond. */
export function spanMs(option: string): (text: string) => number {
  return (text) => {
    const [, number = "0", unit = ""] = /^(\d{1,9})(ms|[smhd])$/.exec(text) ?? [];
    if (Number(number) === 0) throw new UsageError(`${option} takes a time span such as 500ms, 90s, 10m`);
    return Number(number) * (spanUnits[unit] ?? 0);
  };
}

/** A time: ISO 8601, or a time span before now such as `90s`, `10m`, `2h`, `7d`. */
export function moment(option: string): (text: string) => string {
  return (text) => {
    const [, number, unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
    const at = number === undefined ? Date.parse(text) : Date.now() - Number(number) * (spanUnits[unit] ?? 0);
    if (Number.isNaN(at)) throw new UsageError(`${option} takes a time such as 2026-01-31T12:00:00Z, or a span such as 90s, 10m, 2h`);
    return new Date(at).toISOString();
  };
}

/** A command line for `/bin/sh`: a single word is used unchanged, as in ssh; several are a program and its arguments. */
export function commandLine(words: readonly string[]): string {
  return words.length === 1 ? (words[0] as string) : words.map(quoted).join(" ");
}

/** Quotes a word for the shell. */
export function quoted(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
