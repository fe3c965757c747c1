/** Calls that move files. */
import Type from "typebox";
import { UploadedAnswer } from "../../../shared/schemas/answers.ts";
import { FileMode, FilePath } from "../../../shared/schemas/api.ts";
import { noDisk, noSandbox, notRunning } from "../failures.ts";
import { type OperationDocs, ok } from "../operation.ts";

const tag = "Files";

const UploadForm = Type.Object({
  path: FilePath,
  file: Type.String({ description: "The file's bytes.", format: "binary" }),
  mode: Type.Optional(FileMode),
});

export const upload: OperationDocs = {
  tag,
  name: "uploadFile",
  summary: "Upload a file",
  description:
    "A form with `path` and `file` in any order, or the bytes themselves with `?path=`. Folders that are missing are made. The file is replaced in one step: an upload that breaks leaves the old one.",
  of: "sandbox",
  query: { path: "/work/data.csv", mode: "644" },
  file: [
    { type: "multipart/form-data", schema: UploadForm },
    { type: "application/octet-stream", example: "day,total\n1,42\n" },
  ],
  success: ok("The file is in place.", UploadedAnswer, { message: "File uploaded", path: "/work/data.csv", size: 15 }),
  failures: {
    invalid_request: { when: "No path, no file, or a form that cannot be read.", message: "Missing required field: path" },
    ...noSandbox,
    ...notRunning,
    ...noDisk,
    payload_too_large: { when: "The file is larger than the server takes (1 GiB by default).", message: "a file must be at most 1073741824 bytes" },
    unprocessable: { when: "There is a folder at that path, or the path leads through a file.", message: "the path is a directory: /work" },
  },
  curl: "-F path=/work/data.csv -F file=@data.csv",
};

export const download: OperationDocs = {
  tag,
  name: "downloadFile",
  summary: "Download a file or a folder",
  description: "The bytes of a file; a folder comes as a tar archive with `archive=tar`. `Content-Disposition` has the name.",
  of: "sandbox",
  query: { path: "/work/data.csv" },
  success: {
    status: 200,
    description: "The bytes. `Content-Length` says how many, except for an archive.",
    content: [{ type: "application/octet-stream", example: "day,total\n1,42\n" }],
  },
  failures: {
    not_found: { when: "The account has no such sandbox, or the sandbox no such file.", message: "File not found: /work/data.csv" },
    ...notRunning,
    unprocessable: { when: "A folder without `archive=tar`, or something that is neither file nor folder.", message: "the path is a directory: /work" },
  },
  curl: "-o data.csv",
};
