/** The messages of a stream. */
import Type, { type Static } from "typebox";
import { decodeJson, messageChecker } from "../bus/messages.ts";
import { errorCodes, errorReasons, SandgateError } from "../errors.ts";

const Sequence = Type.Integer({ minimum: 0 });
const Failure = Type.Object({
  code: Type.Enum([...errorCodes]),
  message: Type.String(),
  reason: Type.Optional(Type.Enum([...errorReasons])),
  retry_after_s: Type.Optional(Type.Number()),
});

/**
 * One message of a stream is a line of JSON, followed by the payload in data frames. The output of an execution is sent as
 * NDJSON lines made for the client, so a gateway passes them on without parsing.
 */
const Header = Type.Object({
  /** Data, message, end and fail frames of a stream are numbered from 0 without gaps. */
  seq: Type.Optional(Sequence),
  /** A message of a conversation with schemas of its own; numbered like data. */
  message: Type.Optional(Type.Unknown()),
  /** The sender is done. Has its summary and the total number of bytes sent. */
  end: Type.Optional(Type.Object({ bytes: Sequence, summary: Type.Unknown() })),
  /** The sender has failed. */
  fail: Type.Optional(Failure),
  /** From the receiver: the total number of bytes that the sender may have sent. */
  credit: Type.Optional(Sequence),
  /** From the receiver: stop, because the stream is no longer read. */
  cancel: Type.Optional(Failure),
});
export type FrameHeader = Static<typeof Header>;

const checkHeader = messageChecker(Header, "the header of a frame");
export const newline = 0x0a;

export const encodeHeader = (header: FrameHeader): Buffer => Buffer.from(`${JSON.stringify(header)}\n`);

/** Encodes a header and a payload, which may consist of several parts, as one message. */
export function encodeFrame(header: FrameHeader, ...payload: Uint8Array[]): Uint8Array {
  return payload.length > 0 ? Buffer.concat([encodeHeader(header), ...payload]) : encodeHeader(header);
}

/** @throws {SandgateError} `internal_error` if the message is not a frame */
export function decodeFrame(message: Uint8Array): { header: FrameHeader; payload: Uint8Array } {
  const end = message.indexOf(newline);
  if (end < 0) throw new SandgateError("internal_error", "a stream frame has no header");
  return { header: checkHeader(decodeJson(message.subarray(0, end))), payload: message.subarray(end + 1) };
}
