/** Sessions in terminals that an image of memory includes: what is noted of them with it, so that they can be attached to in copies. */
import Type, { type Static } from "typebox";
import { Count, Id } from "../../shared/bus/contract/fields.ts";

/** The most recent output that a session of a copy begins with. */
export const carriedOutputBytesMax = 64 * 1024;

export const CarriedSession = Type.Object({
  /** That of the source. */
  session_id: Id,
  /** Absent: the login shell. */
  command: Type.Optional(Type.String()),
  working_dir: Type.Optional(Type.String()),
  terminal: Type.Object({ cols: Count, rows: Count }),
  detach_ms: Count,
  /** What was left of its time. Absent: it may take as long as it likes. */
  timeout_ms: Type.Optional(Count),
  /** The process id of its keeper in the sandbox. */
  keeper: Count,
  /** The end of its output, in base64. */
  output: Type.String(),
});
export type CarriedSession = Static<typeof CarriedSession>;

/** What taking an image of memory needs of the sessions in it. */
export interface SessionsForImage {
  /** Holds their terminals still. @returns why no image can be taken now, as a sentence without its full stop; undefined if one can */
  hold(): Promise<string | undefined>;
  /** Those that the image includes. Asked for while nothing runs. */
  carried(): readonly CarriedSession[];
  letGo(): void;
}
