/**
 * The bodies and queries of the HTTP API. What they do not name is refused: `inputChecker` closes them.
 * `takes` and `takesEntry` are our own annotations: how a message describes what the field accepts.
 * The descriptions are those of openapi.json.
 */
import Type, { type Static } from "typebox";

export const commandBytesMax = 128 * 1024;

const Name = Type.String({
  description: "A name for people; it need not be unique.",
  pattern: "^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$",
  takes: "1 to 63 characters: letters, digits, '_', '.', '-', starting with a letter or digit",
});

/** Environment variables as they are kept and passed on; `EnvVars` is what a caller may give. */
export const Environment = Type.Record(Type.String(), Type.String());
export type Environment = Static<typeof Environment>;

/**
 * A sandbox's variables, those of one command and the command itself go to the kernel together, which takes 2 MiB with a
 * stack of 8 MiB, and 128 KiB for one of them.
 */
const variables = { countMax: 1_000, nameMax: 255, bytesMax: 64 * 1024, bytesMaxOfAll: 256 * 1024 } as const;

/** Whether there are no more variables, and no longer ones, than a sandbox or a command may have. */
export function isFitting(environment: Environment): boolean {
  const encoder = new TextEncoder();
  const bytes = (text: string): number => encoder.encode(text).length;
  const values = Object.values(environment).map(bytes);
  const names = Object.keys(environment).map(bytes);
  const total = [...names, ...values].reduce((sum, size) => sum + size, 0);
  return values.length <= variables.countMax && values.every((size) => size <= variables.bytesMax) && total <= variables.bytesMaxOfAll;
}

/** Names as POSIX has them, values without NUL. */
const Variables = Type.Record(
  Type.String({ pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${variables.nameMax - 1}}$` }),
  Type.String({ pattern: "^[^\\u0000]*$", maxLength: variables.bytesMax }),
  {
    additionalProperties: false,
    maxProperties: variables.countMax,
    description: "Environment variables.",
    takes: `an object of at most ${variables.countMax} variables, with at most ${variables.bytesMax} bytes each and ${variables.bytesMaxOfAll} together`,
    takesEntry: `a string without NUL of at most ${variables.bytesMax} characters, under a name of at most ${variables.nameMax} letters, digits and '_'`,
  },
);
export const EnvVars = Type.Refine(Variables, isFitting, () => "too many or too long");

/** What a reference is, `shared/util/image.ts` says: one that is none is not a malformed request, and gets a reason. */
const Image = Type.String({
  description: 'A container image; "default" is a general-purpose Linux. Without a registry it is one of Docker Hub.',
  takes: 'the name of a container image, such as "default" or "docker.io/library/alpine:3"',
});

const cpus = Type.Integer({ minimum: 1, maximum: 32, description: "Number of CPUs.", takes: "between 1 and 32 (a whole number)" });
const memory = Type.Integer({ minimum: 128, maximum: 32_768, description: "Memory in MiB.", takes: "between 128 and 32768 (a whole number of MiB)" });
const storage = Type.Integer({ minimum: 1, maximum: 1_000, description: "Storage in GB.", takes: "between 1 and 1000 (a whole number of GB)" });

export const Resources = Type.Object({ cpus: Type.Optional(cpus), memory: Type.Optional(memory), storage: Type.Optional(storage) });

const NetworkAccess = Type.Union([Type.Literal("none"), Type.Literal("outbound")], {
  description: "What the sandbox reaches: the internet, or nothing.",
  takes: '"none" or "outbound"',
});
export const Network = Type.Object({ access: NetworkAccess });
export type NetworkAccess = "none" | "outbound";

/** What a sandbox is given where the caller says nothing. */
export const sandboxDefaults = { cpus: 1, memoryMiB: 512, storageGB: 5, access: "outbound" } as const;

const wait = Type.Boolean({ description: "Answer only when the sandbox is ready; otherwise it may still be `creating`.", default: true });

export const CreateBody = Type.Object({
  image: Image,
  name: Type.Optional(Name),
  resources: Type.Optional(Resources),
  env_vars: Type.Optional(EnvVars),
  network: Type.Optional(Network),
  wait_for_ready: Type.Optional(wait),
});

export const DeleteBody = Type.Object({
  create_snapshot: Type.Optional(Type.Boolean({ description: "Take a last snapshot before.", default: false })),
  snapshot_name: Type.Optional(Name),
});

export const SnapshotBody = Type.Object({
  name: Type.Optional(Name),
  quick: Type.Optional(Type.Boolean({ description: "Do not stand the processes still: the snapshot is crash-consistent.", default: false })),
});

export const CloneBody = Type.Object({
  name: Type.Optional(Name),
  snapshot_name: Type.Optional(Name),
  resources: Type.Optional(Type.Object({ cpus: Type.Optional(cpus), memory: Type.Optional(memory) })),
  image: Type.Optional(Image),
  wait_for_ready: Type.Optional(wait),
});

export const RestoreBody = Type.Object({
  name: Type.Optional(Name),
  resources: Type.Optional(Resources),
  image: Type.Optional(Image),
  env_vars: Type.Optional(EnvVars),
  wait_for_ready: Type.Optional(wait),
});

const Command = Type.String({
  description: "Run as `/bin/sh -c command`: pipes, redirects and chaining work.",
  pattern: "^[^\\u0000]+$",
  takes: `a string of 1 to ${commandBytesMax} bytes without NUL`,
});
const WorkingDir = Type.String({
  description: "Where the command runs; the image's own directory when absent.",
  pattern: "^/[^\\u0000]*$",
  maxLength: 4_096,
  takes: "an absolute path of at most 4096 characters",
});

export const ExecuteBody = Type.Object({
  command: Command,
  timeout: Type.Optional(
    Type.Integer({
      description: "Seconds until the command and all that it started are killed.",
      default: 30,
      minimum: 1,
      maximum: 300,
      takes: "between 1 and 300 (a whole number of seconds)",
    }),
  ),
  working_dir: Type.Optional(WorkingDir),
  env: Type.Optional(EnvVars),
});

/** The upper bound of `timeout` is a setting, so the handler checks it. */
export const ExecuteAsyncBody = Type.Object({
  command: Command,
  timeout: Type.Optional(
    Type.Integer({
      description: "Seconds until the command and all that it started are killed; the server's maximum, an hour by default, when absent.",
      minimum: 1,
      takes: "a whole number of seconds, at least 1",
    }),
  ),
  working_dir: Type.Optional(WorkingDir),
  env: Type.Optional(EnvVars),
});

export const FilePath = Type.String({
  description: "A path inside the sandbox.",
  pattern: "^/[^\\u0000]*$",
  maxLength: 4_096,
  takes: "an absolute path of at most 4096 characters without NUL",
});
export const fileTypes = ["file", "directory", "other"] as const;
export const FileMode = Type.String({
  description: "The file's mode; 644 when absent.",
  pattern: "^0?[0-7]{3,4}$",
  takes: "an octal file mode such as 644 or 0755",
});

/** `token` stands in place of a key. */
/** Of calls that a browser makes by itself and can give no header. Who calls is known before it is read. */
const CallingAccount = Type.String({
  description: "For browsers: the account that the page belongs to, in place of the header `x-sandgate-account`.",
  maxLength: 64,
  takes: "the id of an account",
});

export const SessionQuery = Type.Object({
  token: Type.Optional(Type.String({ maxLength: 256, takes: "a session token" })),
  account: Type.Optional(CallingAccount),
});

export const DownloadQuery = Type.Object({
  path: FilePath,
  archive: Type.Optional(Type.Literal("tar", { description: "Send a folder, as a tar archive.", takes: '"tar"' })),
  account: Type.Optional(CallingAccount),
});
const Unpack = Type.Literal("tar", { description: "The file is a tar archive, to be unpacked in the folder `path`.", takes: '"tar"' });
export const UploadQuery = Type.Object({ path: Type.Optional(FilePath), mode: Type.Optional(FileMode), archive: Type.Optional(Unpack) });
export const UploadTarget = Type.Object({ path: FilePath, mode: Type.Optional(FileMode), archive: Type.Optional(Unpack) });
export type UploadTarget = Static<typeof UploadTarget>;
export const StatQuery = Type.Object({ path: FilePath });

/** A sandbox as people name it. */
export const FindQuery = Type.Object({
  name: Type.String({
    description: "An id, a name, or the beginning of an id, with or without `sb_`.",
    minLength: 1,
    maxLength: 64,
    takes: "a string of 1 to 64 characters",
  }),
});

export const PageQuery = Type.Object({
  page: Type.Optional(Type.Integer({ description: "Which page.", default: 1, minimum: 1, maximum: 1_000_000, takes: "a whole number from 1" })),
  page_size: Type.Optional(
    Type.Integer({ description: "Items on a page.", default: 20, minimum: 1, maximum: 100, takes: "between 1 and 100 (a whole number)" }),
  ),
});

const Time = Type.String({
  description: "A time; UTC where it names no zone.",
  pattern: "^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:?\\d{2})?)?$",
  takes: "an ISO 8601 time such as 2026-01-31T12:00:00Z",
});
export const StatusQuery = Type.Object({ from: Type.Optional(Time), to: Type.Optional(Time) });
export const LogsQuery = Type.Object({
  sandbox_id: Type.Optional(Type.String({ description: "Only of this sandbox.", minLength: 1, maxLength: 64 })),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
  limit: Type.Optional(
    Type.Integer({
      description: "Entries at most; a page that would be larger than 1 MiB has fewer.",
      default: 100,
      minimum: 1,
      maximum: 1_000,
      takes: "between 1 and 1000 (a whole number)",
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: "The `next_cursor` of the page before: this one goes on behind its last entry, with the same `from` and `to` where none are given.",
      minLength: 1,
      maxLength: 256,
      takes: "the next_cursor of an earlier answer",
    }),
  ),
});

/** The status of one execution as results and logs show it. */
export const ExecutionStatus = Type.Union([Type.Literal("running"), Type.Literal("completed"), Type.Literal("timeout"), Type.Literal("error")]);
export type ExecutionStatus = "running" | "completed" | "timeout" | "error";
