/** Files into a sandbox and out of it. */
import Type, { type Static } from "typebox";
import { component, count, message, oneOf, text, time } from "./fields.ts";
import { CallingAccount } from "./sessions.ts";

export const FilePath = Type.String({
  description: "A path inside the sandbox.",
  pattern: "^/[^\\u0000]*$",
  maxLength: 4_096,
  takes: "an absolute path of at most 4096 characters without NUL",
});
const FileMode = Type.String({
  description: "The file's mode; 644 when absent.",
  pattern: "^0?[0-7]{3,4}$",
  takes: "an octal file mode such as 644 or 0755",
});
const tar = (description: string) => Type.Optional(Type.Literal("tar", { description, takes: '"tar"' }));

export const DownloadQuery = Type.Object({
  path: FilePath,
  archive: tar("Send a folder, as a tar archive."),
  account: Type.Optional(CallingAccount),
});
export type DownloadQuery = Static<typeof DownloadQuery>;

const how = { mode: Type.Optional(FileMode), archive: tar("The file is a tar archive, to be unpacked in the folder `path`.") };
export const UploadQuery = Type.Object({ path: Type.Optional(FilePath), ...how });
export type UploadQuery = Static<typeof UploadQuery>;
/** What query and form must say together. */
export const UploadTarget = Type.Object({ path: FilePath, ...how });
export type UploadTarget = Static<typeof UploadTarget>;
export const UploadForm = Type.Object({
  path: FilePath,
  file: Type.String({ description: "The file's bytes.", format: "binary" }),
  mode: how.mode,
});
export const UploadResult = component("UploadedFile", {
  message,
  path: text("Where the file is, or the folder in which an archive was unpacked."),
  size: count("Bytes."),
  files: Type.Optional(count("Files and folders of an archive.")),
});
export type UploadResult = Static<typeof UploadResult>;

export const StatQuery = Type.Object({ path: FilePath });
export type StatQuery = Static<typeof StatQuery>;
export const FileType = oneOf(["file", "directory", "other"], { description: "Links are followed." });
export const FileInfo = component(
  "File",
  {
    path: text("The path that was asked for."),
    type: FileType,
    size: count("Bytes of a file."),
    mode: text("In octal."),
    modified_at: time("When it was last changed."),
  },
  "What stands at a path in a sandbox.",
);
export type FileInfo = Static<typeof FileInfo>;
