/** Options that give an account or a key its limits. */
import type { Command } from "commander";
import type { AccountChange, CustomLimits, Limits } from "../../client/types.ts";
import type { Tier } from "../../schemas/limits.ts";
import { UsageError } from "../failures.ts";
import { whole } from "../values.ts";
import type { AdminOptions } from "./task.ts";

export interface LimitOptions extends AdminOptions {
  readonly tier?: Tier;
  readonly requests?: number;
  readonly burst?: number;
  readonly sandboxes?: number;
  readonly defaultLimits?: true;
}

/** Without the schemas, whose library the published command line does not have. */
const tiers = Object.keys({ beta: true, pro: true, enterprise: true } satisfies Record<Tier, true>);

/** @param none whose numbers are taken with `--default-limits` */
export function withLimits(command: Command, none: string): Command {
  return command
    .option("--tier <name>", tiers.join(", "), tierOf)
    .option("--requests <n>", "requests in any minute", whole("--requests", 1))
    .option("--burst <n>", "of these, at once", whole("--burst", 1))
    .option("--sandboxes <n>", "sandboxes at the same time", whole("--sandboxes", 0))
    .option("--default-limits", `no numbers of its own: those of the ${none}`);
}

function tierOf(text: string): string {
  if (!tiers.includes(text)) throw new UsageError(`--tier takes ${tiers.join(", ")}`);
  return text;
}

/** Limits of an account or key as one text. */
export function limitsText({ requests_per_minute, burst, sandboxes }: Limits, custom: CustomLimits | null): string {
  const atOnce = burst < requests_per_minute ? `, ${burst} at once` : "";
  return `${requests_per_minute} requests/min${atOnce}, ${sandboxes} sandboxes${custom ? " (own numbers)" : ""}`;
}

/** The part of a change that concerns tier and limits. @throws {UsageError} for options that contradict each other */
export function limitChange({ tier, requests, burst, sandboxes, defaultLimits }: LimitOptions): Pick<AccountChange, "tier" | "limits"> {
  const limits = {
    ...(requests === undefined ? {} : { requests_per_minute: requests }),
    ...(burst === undefined ? {} : { burst }),
    ...(sandboxes === undefined ? {} : { sandboxes }),
  };
  const isGiven = Object.keys(limits).length > 0;
  if (defaultLimits && isGiven) throw new UsageError("--default-limits takes all numbers away: give it, or numbers, but not both");
  return { ...(tier === undefined ? {} : { tier }), ...(defaultLimits ? { limits: null } : isGiven ? { limits } : {}) };
}
