/** The health of the service. */
import Type, { type Static } from "typebox";
import { component, flag, oneOf, text } from "./fields.ts";

export const Health = component("Health", { status: Type.Literal("ok", { description: "The service answers." }) });
export type Health = Static<typeof Health>;
/** What a worker tells of its host. */
export const hostMembers = {
  strong: flag("Whether it can run strong sandboxes."),
  not_enforced: Type.Array(Type.String(), { description: "Limits that its host cannot enforce." }),
  lacks: Type.Array(Type.String(), {
    description: "What its host lacks: `not_enforced`, and others such as `user_ids` and `exec_server`. The worker says why at its start.",
  }),
};
export type HostMembers = { readonly [Name in keyof typeof hostMembers]: Static<(typeof hostMembers)[Name]> };
export const Readiness = component("Readiness", {
  status: oneOf(["ready", "unavailable"], { description: "Whether the service can carry out calls." }),
  nats: flag("Whether NATS can be reached."),
  workers: Type.Array(
    Type.Object({
      id: text("The worker's id."),
      draining: flag("Whether the worker is shutting down."),
      ...hostMembers,
    }),
    { description: "The workers that are present." },
  ),
});
export type Readiness = Static<typeof Readiness>;
