/** Calls to workers about files. */
import Type, { type Static } from "typebox";
import { FilePath, FileType, UploadTarget } from "../../schemas/files.ts";
import type { Declared } from "./declared.ts";
import { Count, caller, Empty, Id, StreamTarget } from "./fields.ts";

/** What the worker sends when the file is in place. */
const UploadDone = Type.Object({
  size: Count,
  /** Files and folders of an archive. */
  files: Type.Optional(Count),
});
export type UploadDone = Static<typeof UploadDone>;

export const fileCalls = {
  /** Replies when the bytes may come. */
  upload: {
    request: Type.Object({
      ...caller,
      sandbox_id: Id,
      /** The file comes on it, and what became of it is its end. */
      to: StreamTarget,
      /** Unknown while a multipart body sends the file before its path; then the end frame brings it. */
      path: Type.Optional(FilePath),
      size_hint: Type.Optional(Count),
    }),
    reply: Empty,
    stream: { end: UploadDone, sent: UploadTarget },
    timeoutMs: 60_000,
  },
  /** Replies with the size where it is known. */
  download: {
    request: Type.Object({ ...caller, sandbox_id: Id, path: FilePath, archive: Type.Boolean(), to: StreamTarget }),
    reply: Type.Object({ size: Type.Optional(Count) }),
    stream: { end: Empty },
    timeoutMs: 60_000,
  },
  /** What stands at a path; the mode in octal. */
  stat: {
    request: Type.Object({ ...caller, sandbox_id: Id, path: FilePath }),
    reply: Type.Object({ type: FileType, size: Count, mode: Type.String(), modified_at_ms: Type.Integer() }),
    timeoutMs: 60_000,
  },
} satisfies Declared;
