/** The JSON of messages and records. */
import { SandgateError } from "../errors.ts";

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
