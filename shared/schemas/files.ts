/** File transfer into and out of a sandbox. */
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
  description: "The file's mode; defaults to 644.",
  pattern: "^0?[0-7]{3,4}$",
  takes: "an octal file mode such as 644 or 0755",
});
const tar = (description: string) => Type.Optional(Type.Literal("tar", { description, takes: '"tar"' }));

export const DownloadQuery = Type.Object({
  path: FilePath,
  archive: tar("Send a folder as a tar archive."),
  account: Type.Optional(CallingAccount),
});
export type DownloadQuery = Static<typeof DownloadQuery>;

const how = { mode: Type.Optional(FileMode), archive: tar("The file is a tar archive; unpack it in the folder `path`.") };
export const UploadQuery = Type.Object({ path: Type.Optional(FilePath), ...how });
export type UploadQuery = Static<typeof UploadQuery>;
/** What query and form must specify together. */
export const UploadTarget = Type.Object({ path: FilePath, ...how });
export type UploadTarget = Static<typeof UploadTarget>;
export const UploadForm = Type.Object({
  path: FilePath,
  file: Type.String({ description: "The file's bytes.", format: "binary" }),
  mode: how.mode,
});
export const UploadResult = component("UploadedFile", {
  message,
  path: text("The path of the file, or the folder in which the archive was unpacked."),
  size: count("Size in bytes."),
  files: Type.Optional(count("Number of files and folders unpacked from the archive.")),
});
export type UploadResult = Static<typeof UploadResult>;

export const StatQuery = Type.Object({ path: FilePath });
export type StatQuery = Static<typeof StatQuery>;
export const FileType = oneOf(["file", "directory", "other"], { description: "Links are followed." });
export const FileInfo = component(
  "File",
  {
    path: text("The requested path."),
    type: FileType,
    size: count("Size of the file in bytes."),
    mode: text("The mode in octal."),
    modified_at: time("When the file was last modified."),
  },
  "The file or folder at a path in a sandbox.",
);
export type FileInfo = Static<typeof FileInfo>;
