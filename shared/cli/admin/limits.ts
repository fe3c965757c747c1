/** Options that set the limits of an account or key. */
import type { Command } from "commander";
import type { AccountChange, CustomLimits, Limits, NewAccountBody } from "../../client/types.ts";
import type { Tier } from "../../schemas/limits.ts";
import { UsageError } from "../failures.ts";
import { given } from "../task.ts";
import { whole } from "../values.ts";
import type { AdminOptions } from "./task.ts";

export interface LimitOptions extends AdminOptions {
  readonly tier?: Tier;
  readonly requests?: number;
  readonly burst?: number;
  readonly sandboxes?: number;
  readonly defaultLimits?: true;
}

/** Does not import the schemas, whose library is not part of the published command line. */
const tiers = Object.keys({ beta: true, pro: true, enterprise: true } satisfies Record<Tier, true>);

/** The options that change limits. @param none whose limits apply with `--default-limits` */
export const withLimitChange = (command: Command, none: string): Command =>
  withLimits(command).option("--default-limits", `no custom limits; use those of the ${none}`);

export function withLimits(command: Command): Command {
  return command
    .option("--tier <name>", tiers.join(", "), tierOf)
    .option("--requests <n>", "requests per minute", whole("--requests", 1))
    .option("--burst <n>", "how many of them may arrive at once", whole("--burst", 1))
    .option("--sandboxes <n>", "sandboxes at the same time", whole("--sandboxes", 0));
}

function tierOf(text: string): string {
  if (!tiers.includes(text)) throw new UsageError(`--tier takes ${tiers.join(", ")}`);
  return text;
}

/** The limits of an account or key as text. */
export function limitsText({ requests_per_minute, burst, sandboxes }: Limits, custom: CustomLimits | null): string {
  const atOnce = burst < requests_per_minute ? `, ${burst} at once` : "";
  return `${requests_per_minute} requests/min${atOnce}, ${sandboxes} sandboxes${custom ? " (custom)" : ""}`;
}

/** The tier and limits that the options name. */
export function limitsNamed({ tier, requests, burst, sandboxes }: LimitOptions): Pick<NewAccountBody, "tier" | "limits"> {
  const limits = given({ requests_per_minute: requests, burst, sandboxes });
  return { ...given({ tier }), ...(Object.keys(limits).length > 0 ? { limits } : {}) };
}

/** The tier and limits in a change. @throws {UsageError} for contradicting options */
export function limitChange(options: LimitOptions): Pick<AccountChange, "tier" | "limits"> {
  const named = limitsNamed(options);
  if (!options.defaultLimits) return named;
  if (named.limits) throw new UsageError("--default-limits removes all custom limits: use it or give limits, not both");
  return { ...named, limits: null };
}
