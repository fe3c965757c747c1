/** Calls that move files. */
import { FileInfo, UploadForm, UploadResult } from "../../../shared/schemas/files.ts";
import { times } from "../examples.ts";
import { noDisk, noSandbox, notRunning } from "../failures.ts";
import { type OperationDocs, ok } from "../operation.ts";

const tag = "Files";

export const upload = {
  tag,
  name: "uploadFile",
  summary: "Upload a file",
  description:
    "A form with `path` and `file` in any order, or the bytes themselves with `?path=`. Folders that are missing are made. The file is replaced in one step: an upload that breaks leaves the old one.\n\nWith `?archive=tar` the file is a tar archive, as it is or compressed, which the sandbox's own `tar` unpacks in the folder `path` once all of it has come.",
  of: "sandbox",
  query: { path: "/work/data.csv", mode: "644" },
  file: [
    { type: "multipart/form-data", schema: UploadForm },
    { type: "application/octet-stream", example: "day,total\n1,42\n" },
  ],
  success: ok("The file is in place.", UploadResult, { message: "File uploaded", path: "/work/data.csv", size: 15 }),
  failures: {
    invalid_request: { when: "No path, no file, or a form that cannot be read.", message: "Missing required field: path" },
    ...noSandbox,
    ...notRunning,
    ...noDisk,
    payload_too_large: { when: "The file is larger than the server takes (1 GiB by default).", message: "a file must be at most 1073741824 bytes" },
    unprocessable: {
      when: "There is a folder at that path, the path leads through a file, or it is no archive that can be unpacked.",
      message: "the path is a directory: /work",
      reason: "is_directory",
    },
  },
  input: "printf 'day,total\\n1,42\\n'",
  curl: "-F path=/work/data.csv -F file=@-",
} satisfies OperationDocs;

export const stat = {
  tag,
  name: "statFile",
  summary: "See what stands at a path",
  description:
    "Whether it is a file or a folder, its size and mode. Looking up has an allowance of its own, 600 calls a minute, and spends none of the tier's.",
  of: "sandbox",
  query: { path: "/work/data.csv" },
  success: ok("What is there.", FileInfo, { path: "/work/data.csv", type: "file", size: 15, mode: "644", modified_at: times.began }),
  failures: {
    not_found: { when: "The account has no such sandbox, or the sandbox no such file.", message: "File not found: /work/data.csv", reason: "no_such_file" },
    ...notRunning,
    unprocessable: { when: "The image has no `stat`.", message: "the file could not be accessed: /work/data.csv", reason: "inaccessible" },
  },
} satisfies OperationDocs;

export const download = {
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
    not_found: { when: "The account has no such sandbox, or the sandbox no such file.", message: "File not found: /work/data.csv", reason: "no_such_file" },
    ...notRunning,
    unprocessable: {
      when: "A folder without `archive=tar`, or something that is neither file nor folder.",
      message: "the path is a directory: /work",
      reason: "is_directory",
    },
  },
  curl: "-o data.csv",
} satisfies OperationDocs;
