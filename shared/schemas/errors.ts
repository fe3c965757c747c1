/** How errors are answered. */
import Type, { type Static } from "typebox";
import { errorCodes, errorReasons } from "../errors.ts";
import { component, oneOf, text } from "./fields.ts";

export const ErrorCode = oneOf(errorCodes, { component: "ErrorCode", description: "What is wrong, for programs: a closed set." });
export const ErrorReason = oneOf(errorReasons, {
  component: "ErrorReason",
  description: "What exactly is not there or cannot be done, for programs: a closed set. Comes with the codes `not_found` and `unprocessable`.",
});

export const ErrorAnswer = component("Error", {
  error: Type.Object({
    code: ErrorCode,
    reason: Type.Optional(ErrorReason),
    message: text("What is wrong, for people."),
    request_id: text("The `x-request-id` of this answer, under which the server's log has it."),
  }),
});
export type ErrorAnswer = Static<typeof ErrorAnswer>;
