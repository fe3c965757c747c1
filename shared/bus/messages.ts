/** The JSON of messages and records, and checks of what comes from another part or out of the storage. */
import type { Static, TSchema } from "typebox";
import { SandgateError } from "../errors.ts";
import { type Check, checker } from "../schemas/validate.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const encodeJson = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

/** @throws {SandgateError} `internal_error`: a payload that is none is a defect of its sender. */
export function decodeJson(data: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(data));
  } catch (cause) {
    throw new SandgateError("internal_error", "a message on the bus was not valid JSON", { cause });
  }
}

const compiled = new WeakMap<TSchema, Check<unknown>>();

/**
 * A check of messages. Each schema is compiled once.
 *
 * @param what it is, for the log.
 * @throws {SandgateError} `internal_error`.
 */
export function messageChecker<S extends TSchema>(schema: S, what: string): Check<Static<S>> {
  const check = (compiled.get(schema) ?? checker(schema)) as Check<Static<S>>;
  compiled.set(schema, check);
  return asDefect(check, what);
}

/** The same check for what no client has sent: what is not valid is a defect of who wrote it. @throws {SandgateError} `internal_error`. */
export function asDefect<T>(check: Check<T>, what: string): Check<T> {
  return (value) => {
    try {
      return check(value);
    } catch (cause) {
      throw new SandgateError("internal_error", "a message on the bus was not valid", { cause: new Error(what, { cause }) });
    }
  };
}
