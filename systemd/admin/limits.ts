/** Options that give an account or a key its limits. */
import { tiers } from "../../shared/schemas/limits.ts";
import type { Values } from "./command.ts";
import { UsageError } from "./failures.ts";

export const limitOptions = ["tier", "requests", "burst", "sandboxes", "default-limits"] as const;

/** Limits as the API shows them. */
export interface LimitsView {
  readonly requests_per_minute: number;
  readonly burst: number;
  readonly sandboxes: number;
}

/** Limits of an account or key as one text; a star where an operator has given numbers. */
export function limitsText(limits: LimitsView, custom: object | null): string {
  const { requests_per_minute, burst, sandboxes } = limits;
  const atOnce = burst < requests_per_minute ? `, ${burst} at once` : "";
  return `${requests_per_minute} requests/min${atOnce}, ${sandboxes} sandboxes${custom ? " (own numbers)" : ""}`;
}

/** The part of a change that concerns tier and limits. @throws {UsageError} on a value that none can have. */
export function limitChange(values: Values): { tier?: string; limits?: object | null } {
  const { tier, requests, burst, sandboxes, "default-limits": none } = values;
  if (tier !== undefined && !tiers.some((known) => known === tier)) throw new UsageError(`--tier takes ${tiers.join(", ")}`);
  const limits = {
    ...numberOf("requests_per_minute", "--requests", requests, 1),
    ...numberOf("burst", "--burst", burst, 1),
    ...numberOf("sandboxes", "--sandboxes", sandboxes, 0),
  };
  const isGiven = Object.keys(limits).length > 0;
  if (none && isGiven) throw new UsageError("--default-limits takes all numbers away: give it, or numbers, but not both");
  return { ...(tier === undefined ? {} : { tier }), ...(none ? { limits: null } : isGiven ? { limits } : {}) };
}

function numberOf(name: string, option: string, text: string | undefined, min: number): Record<string, number> {
  if (text === undefined) return {};
  if (!/^\d{1,10}$/.test(text) || Number(text) < min) throw new UsageError(`${option} takes a whole number from ${min}`);
  return { [name]: Number(text) };
}
