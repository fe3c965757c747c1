/** Sandboxes. */
import Type, { type Static } from "typebox";
import { sandboxStates } from "../state/sandbox.ts";
import { EnvVars } from "./environment.ts";
import { component, count, flag, message, Name, oneOf, pageOf, text, textOrNull, time } from "./fields.ts";

/** References are checked in `shared/util/image.ts`: a bad one is answered with a reason, not as a malformed request. */
export const ImageName = Type.String({
  description: 'A container image; "default" is a general-purpose Linux. Names without a registry refer to Docker Hub.',
  takes: 'the name of a container image, such as "default" or "docker.io/library/alpine:3"',
});

const cpus = Type.Integer({ minimum: 1, maximum: 32, description: "Number of CPUs.", takes: "between 1 and 32 (a whole number)" });
const memory = Type.Integer({ minimum: 128, maximum: 32_768, description: "Memory in MiB.", takes: "between 128 and 32768 (a whole number of MiB)" });
const storage = Type.Integer({ minimum: 1, maximum: 1_000, description: "Storage in GB.", takes: "between 1 and 1000 (a whole number of GB)" });
/** The resources of a sandbox. */
export const Resources = Type.Object({ cpus: Type.Optional(cpus), memory: Type.Optional(memory), storage: Type.Optional(storage) });
export type Resources = Static<typeof Resources>;
/** Without storage: a clone has that of its source. */
export const CloneResources = Type.Object({ cpus: Type.Optional(cpus), memory: Type.Optional(memory) });

export const NetworkAccess = oneOf(["none", "outbound"], {
  description: "What the sandbox can reach: the internet (`outbound`) or nothing (`none`).",
  takes: '"none" or "outbound"',
});
export type NetworkAccess = Static<typeof NetworkAccess>;
const Network = Type.Object({ access: NetworkAccess });

export const isolations = ["standard", "strong"] as const;
export type Isolation = (typeof isolations)[number];
export const Isolation = oneOf(isolations, {
  description:
    "What stands between the sandbox and the host's kernel: a container (`standard`), or gVisor, a kernel of its own that answers its system calls (`strong`). The account or the installation may require `strong`.",
  takes: '"standard" or "strong"',
});

/** The stricter of several; what is not said is standard. */
export const stricter = (...asked: readonly (Isolation | undefined)[]): Isolation => (asked.includes("strong") ? "strong" : "standard");

/** Of a record, which says so only if it is not standard. */
export const isolationOf = ({ isolation = "standard" }: { readonly isolation?: Isolation | undefined }): Isolation => isolation;

/** What a sandbox gets for each value that the caller leaves out. */
export const sandboxDefaults = { cpus: 1, memoryMiB: 512, storageGB: 5, access: "outbound" } as const;

export const wait_for_ready = Type.Optional(
  Type.Boolean({ description: "Whether to answer only when the sandbox is ready. If false, it may still be `creating`.", default: true }),
);

export const CreateBody = Type.Object({
  image: ImageName,
  name: Type.Optional(Name),
  resources: Type.Optional(Resources),
  env_vars: Type.Optional(EnvVars),
  network: Type.Optional(Network),
  isolation: Type.Optional(Isolation),
  wait_for_ready,
});
export type CreateBody = Static<typeof CreateBody>;

export const DeleteBody = Type.Object({
  create_snapshot: Type.Optional(Type.Boolean({ description: "Whether to take a last snapshot first.", default: false })),
  snapshot_name: Type.Optional(Name),
});
export type DeleteBody = Static<typeof DeleteBody>;

/** How people refer to a sandbox. */
export const FindQuery = Type.Object({
  name: Type.String({
    description: "An id, a name, or the start of an id, with or without `sb_`.",
    minLength: 1,
    maxLength: 64,
    takes: "a string of 1 to 64 characters",
  }),
});
export type FindQuery = Static<typeof FindQuery>;

const id = text("The sandbox's id.");

/** The members of a sandbox, for answers that add more. */
export const sandboxMembers = {
  id,
  name: text("The sandbox's name, given at creation or generated."),
  status: oneOf(sandboxStates, {
    description:
      "With status `error`, the field `error` says why the sandbox cannot be used. `moving`: it is on its way to another worker; calls get 503 with `Retry-After` until it is there.",
  }),
  image: text("The container image that the sandbox was created from."),
  created_at: time("When the sandbox was created."),
  cpu: count("Number of CPUs."),
  memory: count("Memory in MiB."),
  storage: count("Storage in GB."),
  disk_size: count("The same as `storage`."),
  network: Network,
  isolation: Isolation,
  memory_restored: flag("Whether processes of the snapshot continue in the sandbox. While it is `creating`: whether they are going to."),
  memory_reason: textOrNull("Why they do not, although that was asked for when the sandbox was made from the snapshot; otherwise null."),
};
const error = Type.Optional(text("Why the sandbox cannot be used; only with status `error`."));
export const SandboxInfo = component("Sandbox", { ...sandboxMembers, error }, "A sandbox as the API shows it.");
export type SandboxInfo = Static<typeof SandboxInfo>;
export const SandboxPage = pageOf("SandboxPage", SandboxInfo);
export type SandboxPage = Static<typeof SandboxPage>;
export const FoundSandboxes = component("FoundSandboxes", { data: Type.Array(SandboxInfo, { description: "Newest first." }) });
export type FoundSandboxes = Static<typeof FoundSandboxes>;

export const DeletedSandbox = component("DeletedSandbox", {
  id,
  message,
  snapshot_created: Type.Optional(flag("Whether a last snapshot was taken.")),
  snapshot_name: Type.Optional(text("The name of that snapshot.")),
  storage_deleted: flag("Whether the files have been deleted."),
});
export type DeletedSandbox = Static<typeof DeletedSandbox>;

export const DeletedAll = component("DeletedAll", {
  deleted_count: count("Number of deleted sandboxes."),
  deleted_ids: Type.Array(Type.String(), { description: "Ids of the deleted sandboxes." }),
  message,
  errors: Type.Optional(Type.Array(Type.Object({ id: Type.String(), error: Type.String() }), { description: "The sandboxes that could not be deleted." })),
});
export type DeletedAll = Static<typeof DeletedAll>;
