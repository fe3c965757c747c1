/** Parsing and checking of messages from clients. */
import type { TSchema } from "typebox";
import { SandgateError } from "../../errors.ts";
import { ClientMessage } from "../../schemas/session-messages.ts";
import { inputChecker } from "../../schemas/validate.ts";

const checks = new Map(ClientMessage.anyOf.map((schema) => [schema.properties.type.const as string, inputChecker(schema as TSchema).check]));

/** Parses a text frame. @throws {SandgateError} `invalid_request` that says what is wrong */
export function readClientMessage(text: string): ClientMessage {
  const value = parse(text);
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  if (typeof type !== "string") throw new SandgateError("invalid_request", "a text frame must be a JSON object with a type");
  const check = checks.get(type);
  if (!check) throw new SandgateError("invalid_request", `unknown message type: ${type.slice(0, 64)}`);
  return check(value) as ClientMessage;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SandgateError("invalid_request", "a text frame is not valid JSON", { cause });
  }
}
