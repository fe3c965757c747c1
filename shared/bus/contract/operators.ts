/** Calls of operators to workers. */
import Type, { type Static } from "typebox";
import type { Declared } from "./declared.ts";
import { Count, Empty, Id, Millis } from "./fields.ts";

const ImageEntry = Type.Object({
  id: Type.String(),
  names: Type.Array(Type.String()),
  size_bytes: Count,
  /** When a sandbox was last made of it by name; absent before the first time. */
  used_at_ms: Type.Optional(Millis),
  in_use: Type.Boolean(),
  default: Type.Boolean(),
});
export type ImageEntry = Static<typeof ImageEntry>;

export const operatorCalls = {
  /** Whether the worker takes new sandboxes; kept over its restarts. */
  drain: { request: Type.Object({ request_id: Id, on: Type.Boolean() }), reply: Empty, timeoutMs: 10_000 },
  /** Removes the command log of an account. */
  forgetAccount: { request: Type.Object({ request_id: Id, account_id: Id }), reply: Empty, timeoutMs: 60_000 },
  /** What is in the image store of a worker. */
  images: { request: Type.Object({ request_id: Id }), reply: Type.Object({ images: Type.Array(ImageEntry) }), timeoutMs: 30_000 },
  /** Removes an image that nothing needs. */
  removeImage: { request: Type.Object({ request_id: Id, id: Type.String() }), reply: Empty, timeoutMs: 120_000 },
} satisfies Declared;
