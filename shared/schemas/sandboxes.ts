/** Sandboxes. */
import Type, { type Static } from "typebox";
import { sandboxStates } from "../state/sandbox.ts";
import { EnvVars } from "./environment.ts";
import { component, count, flag, message, Name, oneOf, text, time } from "./fields.ts";
import { pageOf } from "./pages.ts";

/** What a reference is, `shared/util/image.ts` says: one that is none is not a malformed request, and gets a reason. */
export const ImageName = Type.String({
  description: 'A container image; "default" is a general-purpose Linux. Without a registry it is one of Docker Hub.',
  takes: 'the name of a container image, such as "default" or "docker.io/library/alpine:3"',
});

const cpus = Type.Integer({ minimum: 1, maximum: 32, description: "Number of CPUs.", takes: "between 1 and 32 (a whole number)" });
const memory = Type.Integer({ minimum: 128, maximum: 32_768, description: "Memory in MiB.", takes: "between 128 and 32768 (a whole number of MiB)" });
const storage = Type.Integer({ minimum: 1, maximum: 1_000, description: "Storage in GB.", takes: "between 1 and 1000 (a whole number of GB)" });
/** What a sandbox may use. */
export const Resources = Type.Object({ cpus: Type.Optional(cpus), memory: Type.Optional(memory), storage: Type.Optional(storage) });
export type Resources = Static<typeof Resources>;
/** Storage is that of the source. */
export const CloneResources = Type.Object({ cpus: Type.Optional(cpus), memory: Type.Optional(memory) });

export const NetworkAccess = oneOf(["none", "outbound"], {
  description: "What the sandbox reaches: the internet, or nothing.",
  takes: '"none" or "outbound"',
});
export type NetworkAccess = Static<typeof NetworkAccess>;
const Network = Type.Object({ access: NetworkAccess });

/** What a sandbox is given where the caller says nothing. */
export const sandboxDefaults = { cpus: 1, memoryMiB: 512, storageGB: 5, access: "outbound" } as const;

export const wait_for_ready = Type.Optional(
  Type.Boolean({ description: "Answer only when the sandbox is ready; otherwise it may still be `creating`.", default: true }),
);

export const CreateBody = Type.Object({
  image: ImageName,
  name: Type.Optional(Name),
  resources: Type.Optional(Resources),
  env_vars: Type.Optional(EnvVars),
  network: Type.Optional(Network),
  wait_for_ready,
});
export type CreateBody = Static<typeof CreateBody>;

export const DeleteBody = Type.Object({
  create_snapshot: Type.Optional(Type.Boolean({ description: "Take a last snapshot before.", default: false })),
  snapshot_name: Type.Optional(Name),
});
export type DeleteBody = Static<typeof DeleteBody>;

/** A sandbox as people name it. */
export const FindQuery = Type.Object({
  name: Type.String({
    description: "An id, a name, or the beginning of an id, with or without `sb_`.",
    minLength: 1,
    maxLength: 64,
    takes: "a string of 1 to 64 characters",
  }),
});
export type FindQuery = Static<typeof FindQuery>;

const id = text("The sandbox's id.");

/** The members of a sandbox, for the answers that have more. */
export const sandboxMembers = {
  id,
  name: text("Given at creation, or made."),
  status: oneOf(sandboxStates, { description: "`error` says why it cannot be used." }),
  image: text("The container image that it was made from."),
  created_at: time("When it was made."),
  cpu: count("Number of CPUs."),
  memory: count("MiB."),
  storage: count("GB."),
  disk_size: count("The same as `storage`."),
  network: Network,
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
  snapshot_created: Type.Optional(flag("A last snapshot was taken.")),
  snapshot_name: Type.Optional(text("Its name.")),
  storage_deleted: flag("The files are gone."),
});
export type DeletedSandbox = Static<typeof DeletedSandbox>;

export const DeletedAll = component("DeletedAll", {
  deleted_count: count("How many are gone."),
  deleted_ids: Type.Array(Type.String(), { description: "Which." }),
  message,
  errors: Type.Optional(Type.Array(Type.Object({ id: Type.String(), error: Type.String() }), { description: "Those that could not be deleted." })),
});
export type DeletedAll = Static<typeof DeletedAll>;
