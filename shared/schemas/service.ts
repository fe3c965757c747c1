/** Whether the service works. */
import Type, { type Static } from "typebox";
import { component, flag, oneOf, text } from "./fields.ts";

export const Health = component("Health", { status: Type.Literal("ok", { description: "It answers." }) });
export type Health = Static<typeof Health>;
export const Readiness = component("Readiness", {
  status: oneOf(["ready", "unavailable"], { description: "Whether calls can be carried out." }),
  nats: flag("NATS can be reached."),
  workers: Type.Array(
    Type.Object({
      id: text("The worker."),
      draining: flag("It is stopping."),
      not_enforced: Type.Array(Type.String(), { description: "Limits that its host lacks." }),
    }),
    { description: "Those that are there." },
  ),
});
export type Readiness = Static<typeof Readiness>;
