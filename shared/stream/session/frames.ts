/**
 * Binary frames of live sessions. Output: channel (1 byte), offset of its first byte in the session's output
 * (8 bytes, big-endian), bytes. Input: channel 0 (1 byte), bytes.
 */
import { channels, frameBytesMax, type OutputChannel } from "./protocol.ts";

export const outputHeaderBytes = 9;
const inputHeaderBytes = 1;

/** Maximum payload of one output frame. */
export const outputPayloadMax = frameBytesMax - outputHeaderBytes;
export const inputPayloadMax = frameBytesMax - inputHeaderBytes;

export interface OutputFrame {
  readonly channel: OutputChannel;
  /** Offset of the first byte in the session's output, with both channels counted together. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** The header that precedes the bytes. */
export function outputHeader({ channel, offset }: Omit<OutputFrame, "bytes">): Uint8Array {
  const header = new Uint8Array(outputHeaderBytes);
  header[0] = channel;
  new DataView(header.buffer).setBigUint64(1, BigInt(offset));
  return header;
}

/** The bytes are a view into the frame. Undefined if it is not an output frame. */
export function decodeOutput(frame: Uint8Array): OutputFrame | undefined {
  const channel = frame[0];
  if (frame.length < outputHeaderBytes || (channel !== channels.stdout && channel !== channels.stderr)) return undefined;
  const offset = Number(new DataView(frame.buffer, frame.byteOffset, frame.byteLength).getBigUint64(1));
  return { channel, offset, bytes: frame.subarray(outputHeaderBytes) };
}

/** Encodes one input frame of at most `inputPayloadMax` bytes. */
export function encodeInput(bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(inputHeaderBytes + bytes.length);
  frame[0] = channels.stdin;
  frame.set(bytes, inputHeaderBytes);
  return frame;
}

/** The bytes are a view into the frame. Undefined if it is not an input frame. */
export function decodeInput(frame: Uint8Array): Uint8Array | undefined {
  return frame[0] === channels.stdin ? frame.subarray(inputHeaderBytes) : undefined;
}
