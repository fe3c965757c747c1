/**
 * One message of a stream: a line of JSON, then for data frames the bytes themselves.
 * Bytes of an execution are NDJSON lines made for the client, so a gateway passes them on unread.
 */
import Type, { type Static } from "typebox";
import { decodeJson } from "../bus/json.ts";
import { errorCodes, errorReasons, SandgateError } from "../errors.ts";
import { checker } from "../schemas/validate.ts";

const Sequence = Type.Integer({ minimum: 0 });
const Failure = Type.Object({
  code: Type.Enum([...errorCodes]),
  message: Type.String(),
  reason: Type.Optional(Type.Enum([...errorReasons])),
  retry_after_s: Type.Optional(Type.Number()),
});

const Header = Type.Object({
  /** Data, end and fail frames of one stream are numbered from 0 without a hole. */
  seq: Type.Optional(Sequence),
  /** Part of a conversation whose messages have schemas of their own; numbered like data. */
  message: Type.Optional(Type.Unknown()),
  /** The sender is done; its summary, and how many bytes it sent in all. */
  end: Type.Optional(Type.Object({ bytes: Sequence, summary: Type.Unknown() })),
  /** The sender cannot go on. */
  fail: Type.Optional(Failure),
  /** From the receiver: bytes that the sender may have sent in all. */
  credit: Type.Optional(Sequence),
  /** From the receiver: stop, nobody reads any more. */
  cancel: Type.Optional(Failure),
});
export type FrameHeader = Static<typeof Header>;

const checkHeader = checker(Header);
const newline = 0x0a;

/** Header and payload, which may come in parts, as one message. */
export function encodeFrame(header: FrameHeader, ...payload: Uint8Array[]): Uint8Array {
  const line = Buffer.from(`${JSON.stringify(header)}\n`);
  return payload.length > 0 ? Buffer.concat([line, ...payload]) : line;
}

/** @throws {SandgateError} `internal_error` when the message is no frame. */
export function decodeFrame(message: Uint8Array): { header: FrameHeader; payload: Uint8Array } {
  const end = message.indexOf(newline);
  if (end < 0) throw new SandgateError("internal_error", "a stream frame has no header");
  return { header: checkHeader(decodeJson(message.subarray(0, end))), payload: message.subarray(end + 1) };
}
