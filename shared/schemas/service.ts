/** The health of the service. */
import Type, { type Static } from "typebox";
import { component, flag, oneOf, text } from "./fields.ts";

export const Health = component("Health", { status: Type.Literal("ok", { description: "The service answers." }) });
export type Health = Static<typeof Health>;
export const Readiness = component("Readiness", {
  status: oneOf(["ready", "unavailable"], { description: "Whether the service can carry out calls." }),
  nats: flag("Whether NATS can be reached."),
  workers: Type.Array(
    Type.Object({
      id: text("The worker's id."),
      draining: flag("Whether the worker is shutting down."),
      strong: flag("Whether it can run strong sandboxes."),
      not_enforced: Type.Array(Type.String(), { description: "Limits that its host cannot enforce." }),
    }),
    { description: "The workers that are present." },
  ),
});
export type Readiness = Static<typeof Readiness>;
