/** Memory in snapshots: what callers may ask for, and what stands against it. */
import { errors } from "./known-errors.ts";

/** `require`: with memory or not at all. `prefer`: with memory if that is possible. `skip`: without. */
export const memoryWishes = ["require", "prefer", "skip"] as const;
export type MemoryWish = (typeof memoryWishes)[number];

/** Whether memory is taken or restored; if not although it was asked for, why. */
export type MemoryDecision = { readonly memory: true } | { readonly memory: false; readonly reason: string | undefined };

/**
 * @param refusal why memory cannot be taken or restored; undefined if it can
 * @throws {SandgateError} `unprocessable` when it is required and cannot be
 */
export function decideMemory(wish: MemoryWish, refusal: string | undefined): MemoryDecision {
  if (wish === "skip") return { memory: false, reason: undefined };
  if (refusal === undefined) return { memory: true };
  if (wish === "require") throw errors.noMemory(refusal);
  return { memory: false, reason: refusal };
}

/** What processes have read, or depend on, and cannot be told anew. */
interface Settings {
  /** In MiB. */
  readonly memory: number;
  /** In GB. */
  readonly storage: number;
  readonly env_vars: Readonly<Record<string, string>>;
  readonly isolation?: string | undefined;
}

/**
 * Why processes cannot continue in a new sandbox; undefined if its settings allow it.
 *
 * @param had the settings of the sandbox in which they ran
 * @param gets those of the new one; `image` only where it replaces the image of the other
 */
export function changeRefusal(had: Settings, gets: Settings & { readonly image?: string | undefined }): string | undefined {
  if (gets.image !== undefined) return "processes cannot continue on another image";
  if (!isSame(had.env_vars, gets.env_vars)) return "processes cannot continue with other env_vars";
  if (gets.storage !== had.storage) return "processes cannot continue with other storage";
  if (gets.memory < had.memory) return `processes cannot continue with less memory than they had (${had.memory} MiB)`;
  if ((gets.isolation ?? "standard") !== (had.isolation ?? "standard")) return "processes cannot continue under another isolation";
  return undefined;
}

function isSame(some: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(some);
  return names.length === Object.keys(others).length && names.every((name) => Object.hasOwn(others, name) && some[name] === others[name]);
}
