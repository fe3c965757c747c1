/** Tiers and their limits. */
import Type, { type Static } from "typebox";
import { component, count, oneOf } from "./fields.ts";

export const tiers = ["beta", "pro", "enterprise"] as const;
export type Tier = (typeof tiers)[number];
export const Tier = oneOf(tiers, {
  description: "The tier, which sets every limit that has no custom value.",
  takes: '"beta", "pro" or "enterprise"',
});

export const Limits = component(
  "Limits",
  {
    requests_per_minute: count("Requests per minute."),
    burst: count("Requests that may arrive at once."),
    sandboxes: count("Sandboxes at the same time."),
  },
  "The limits of a key.",
);
export type Limits = Static<typeof Limits>;

/** Limits set by an operator, which replace those of the tier. */
export const CustomLimits = Type.Object({
  requests_per_minute: Type.Optional(Type.Integer({ description: "Requests per minute.", minimum: 1, maximum: 1_000_000_000 })),
  burst: Type.Optional(
    Type.Integer({ description: "Requests that may arrive at once; defaults to `requests_per_minute`.", minimum: 1, maximum: 1_000_000_000 }),
  ),
  sandboxes: Type.Optional(Type.Integer({ description: "Sandboxes at the same time.", minimum: 0, maximum: 1_000_000 })),
});
export type CustomLimits = Static<typeof CustomLimits>;
