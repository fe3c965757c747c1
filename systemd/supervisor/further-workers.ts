/** Workers that other installations run on the owned NATS server. */
import Type from "typebox";
import type { WorkerIdentity } from "../../shared/bus/permissions.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { messageOf, StartFailure } from "../base/failure.ts";

const checkWorkers = checker(
  Type.Array(
    Type.Object({
      id: Type.String({ pattern: "^[a-zA-Z0-9_-]{1,63}$" }),
      nkey: Type.String({ pattern: "^U[A-Z2-7]{55}$" }),
      storeNkey: Type.String({ pattern: "^U[A-Z2-7]{55}$" }),
    }),
  ),
);

/** Parses a list of workers. @param file its path, for the message. @throws {StartFailure} if the list is invalid. */
export function parseWorkers(text: string, file: string): WorkerIdentity[] {
  try {
    return checkWorkers(JSON.parse(text));
  } catch (error) {
    throw new StartFailure(`${file} must be a list of {"id", "nkey", "storeNkey"} (nkeys are the public ones, U…): ${messageOf(error)}`);
  }
}
