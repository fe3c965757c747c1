/** What the calls about live sessions answer, as openapi.json describes it. */
import Type from "typebox";
import { component } from "./answers.ts";

export const SessionTokenAnswer = component("SessionToken", {
  token: Type.String({ description: "Good for one WebSocket." }),
  expires_at: Type.String({ format: "date-time", description: "When it is no longer good." }),
});

const SessionAnswer = component("Session", {
  session_id: Type.String({ description: "To attach by." }),
  command: Type.Union([Type.String(), Type.Null()], { description: "What runs, its beginning where it is longer than 4 KiB; null for the login shell." }),
  command_bytes: Type.Optional(Type.Integer({ minimum: 0, description: "The length of the command where `command` is only its beginning." })),
  tty: Type.Boolean({ description: "Whether it has a terminal." }),
  created_at: Type.String({ format: "date-time", description: "When it was started." }),
  attached: Type.Integer({ minimum: 0, description: "Clients now." }),
  status: Type.Enum(["running", "ended"], { description: "`ended`: its last output and its exit code can still be had." }),
});
export const SessionsAnswer = component("Sessions", { data: Type.Array(SessionAnswer, { description: "Newest first." }) });
