/** Output frames of live sessions in one piece; the worker sends the header and the bytes as they are. */
import { type OutputFrame, outputHeader } from "../../shared/stream/session/frames.ts";

export const encodeOutput = ({ bytes, ...rest }: OutputFrame): Uint8Array => Uint8Array.from([...outputHeader(rest), ...bytes]);
