/** Tiers, and the numbers that they stand for. */
import Type, { type Static } from "typebox";
import { component, count, oneOf } from "./fields.ts";

export const tiers = ["beta", "pro", "enterprise"] as const;
export type Tier = (typeof tiers)[number];
export const Tier = oneOf(tiers, {
  description: "Which numbers hold where there are none of one's own.",
  takes: '"beta", "pro" or "enterprise"',
});

export const Limits = component(
  "Limits",
  {
    requests_per_minute: count("Requests in any minute."),
    burst: count("Requests at once."),
    sandboxes: count("Sandboxes at the same time."),
  },
  "What a key may do at most.",
);
export type Limits = Static<typeof Limits>;

/** Numbers that an operator has given in place of the tier's. */
export const CustomLimits = Type.Object({
  requests_per_minute: Type.Optional(Type.Integer({ description: "Requests in any minute.", minimum: 1, maximum: 1_000_000_000 })),
  burst: Type.Optional(Type.Integer({ description: "Requests at once; a minute's worth when absent.", minimum: 1, maximum: 1_000_000_000 })),
  sandboxes: Type.Optional(Type.Integer({ description: "Sandboxes at the same time.", minimum: 0, maximum: 1_000_000 })),
});
export type CustomLimits = Static<typeof CustomLimits>;
