/** The shape of error answers. */
import Type, { type Static } from "typebox";
import { errorCodes, errorReasons } from "../errors.ts";
import { component, oneOf, text } from "./fields.ts";

export const ErrorCode = oneOf(errorCodes, { component: "ErrorCode", description: "What is wrong, for programs. A closed set." });
export const ErrorReason = oneOf(errorReasons, {
  component: "ErrorReason",
  description: "What exactly is wrong, for programs. A closed set. Present with the codes `forbidden`, `not_found` and `unprocessable`.",
});

export const ErrorAnswer = component("Error", {
  error: Type.Object({
    code: ErrorCode,
    reason: Type.Optional(ErrorReason),
    message: text("What is wrong, in words for people."),
    request_id: text("The `x-request-id` of this answer, which identifies the request in the server's log."),
  }),
});
export type ErrorAnswer = Static<typeof ErrorAnswer>;
