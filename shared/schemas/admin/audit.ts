/** The operator's view of who changed what: the entries of the audit record. */
import Type, { type Static } from "typebox";
import { component, count, flag, idOf, oneOf, text, textOrNull, time } from "../fields.ts";
import { period } from "../usage.ts";
import { AccountChange, KeyChange } from "./accounts.ts";
import { DrainBody } from "./fleet.ts";

/** The default number of entries on a page. */
export const auditDefault = 100;
/** Maximum number of entries on a page. */
export const auditMax = 1_000;

export const AuditQuery = Type.Object({
  account_id: Type.Optional(idOf("Only what this account did, and what was done to it or to what it owns.")),
  ...period,
  limit: Type.Optional(
    Type.Integer({
      description: "Maximum number of entries. A page can have fewer although older ones follow.",
      default: auditDefault,
      minimum: 1,
      maximum: auditMax,
      takes: `between 1 and ${auditMax} (a whole number)`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: "The `next_cursor` of the previous page. Continues after its last entry, with the same filters.",
      pattern: "^[1-9]\\d{0,14}$",
      takes: "the next_cursor of an earlier answer",
    }),
  ),
});
export type AuditQuery = Static<typeof AuditQuery>;

/** The fields of bodies that may be recorded. No secret is among them. */
const change = Type.Partial(Type.Object({ ...AccountChange.properties, ...KeyChange.properties, ...DrainBody.properties }), {
  description: "What was asked for, where the call names settings; absent otherwise.",
});
export type AuditedChange = Static<typeof change>;

const auditMembers = {
  time: time("When the call ended."),
  action: text(
    "What was done: the `operationId` of the call, or a command on the machine itself (`adminLetMachineIn`, `adminRemoveMachine`, `adminFormCluster`, `adminBackUp`).",
  ),
  outcome: text("`ok`, or the error code; `aborted` if the caller went away before the answer, and it may or may not have been done."),
  by: oneOf(["key", "browser", "stranger", "machine"], {
    description: "How the caller was known: by an API key, by a browser's log-in, not at all, or as who runs the installation, on its own machine.",
  }),
  operator: flag("Whether the caller was an operator."),
  account_id: textOrNull("The caller's account; null for a stranger, and for who works on the machine itself."),
  key_id: textOrNull("The caller's API key; null without one."),
  address: text("The address that the call came from; for what was done on the machine itself, its name."),
  target: textOrNull("The id of what it was done to; null if there is none."),
  target_account_id: textOrNull("The account that it was done to, or that owns the target; null if there is none or it is not known."),
  change: Type.Optional(change),
  request_id: text("The id of the request, as in the log and in the answer's `x-request-id`."),
};

/** As it is stored. */
export const AuditRecordEntry = Type.Object(auditMembers);
export type AuditRecordEntry = Static<typeof AuditRecordEntry>;

export const AuditEntry = component("AuditEntry", {
  sequence: count("The entry's number: later entries have larger ones, some are missing."),
  ...auditMembers,
});
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditPage = component(
  "AuditPage",
  {
    data: Type.Array(AuditEntry, { description: "Newest first." }),
    next_cursor: Type.Optional(text("The `cursor` of the next page; absent on the last one.")),
  },
  "A page of the audit record.",
);
export type AuditPage = Static<typeof AuditPage>;
