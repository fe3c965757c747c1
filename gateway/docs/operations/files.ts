/** Calls that move files. */
import { FileInfo, UploadForm, UploadResult } from "../../../shared/schemas/files.ts";
import { times } from "../examples.ts";
import { noDisk, notRunning, workerLost } from "../failures.ts";
import { ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Files");

export const upload = operation({
  name: "uploadFile",
  summary: "Upload a file",
  description:
    "A form with `path` and `file` in any order, or the raw bytes with `?path=`. Missing folders are created. The file is replaced atomically: a failed upload leaves the old file in place.\n\nWith `?archive=tar` the file is a tar archive, plain or compressed. The sandbox's own `tar` unpacks it in the folder `path` once it has arrived completely.",
  of: "sandbox",
  query: { path: "/work/data.csv", mode: "644" },
  file: [
    { type: "multipart/form-data", schema: UploadForm },
    { type: "application/octet-stream", example: "day,total\n1,42\n" },
  ],
  success: ok("The file is in place.", UploadResult, { message: "File uploaded", path: "/work/data.csv", size: 15 }),
  failures: {
    invalid_request: { when: "The path or the file is missing, or the form is malformed.", message: "Missing required field: path" },
    ...notRunning,
    ...workerLost,
    ...noDisk,
    payload_too_large: { when: "The file is larger than the limit (1 GiB by default).", message: "a file must be at most 1073741824 bytes" },
    unprocessable: {
      when: "The path is a folder or leads through a file, or the archive cannot be unpacked.",
      message: "the path is a directory: /work",
      reason: "is_directory",
    },
  },
  input: "printf 'day,total\\n1,42\\n'",
  curl: "-F path=/work/data.csv -F file=@-",
});

export const stat = operation({
  name: "statFile",
  summary: "Look up a path",
  description:
    "Returns whether the path is a file or a folder, its size and its mode. Lookups have a separate allowance of 600 calls a minute and do not count against the tier's limit.",
  of: "sandbox",
  query: { path: "/work/data.csv" },
  success: ok("The file or folder.", FileInfo, { path: "/work/data.csv", type: "file", size: 15, mode: "644", modified_at: times.began }),
  failures: {
    not_found: { when: "The account has no such sandbox, or the sandbox no such file.", message: "File not found: /work/data.csv", reason: "no_such_file" },
    ...notRunning,
    unprocessable: { when: "The image has no `stat`.", message: "the file could not be accessed: /work/data.csv", reason: "inaccessible" },
  },
});

export const download = operation({
  name: "downloadFile",
  summary: "Download a file or a folder",
  description: "Returns the bytes of a file, or a folder as a tar archive with `archive=tar`. `Content-Disposition` has the file name.",
  of: "sandbox",
  query: { path: "/work/data.csv" },
  success: {
    status: 200,
    description: "The bytes, with `Content-Length` except for an archive.",
    content: [{ type: "application/octet-stream", example: "day,total\n1,42\n" }],
  },
  failures: {
    not_found: { when: "The account has no such sandbox, or the sandbox no such file.", message: "File not found: /work/data.csv", reason: "no_such_file" },
    ...notRunning,
    unprocessable: {
      when: "The path is a folder but `archive=tar` is missing, or it is neither a file nor a folder.",
      message: "the path is a directory: /work",
      reason: "is_directory",
    },
  },
  curl: "-o data.csv",
});
