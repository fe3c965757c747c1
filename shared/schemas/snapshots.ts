/** Snapshots, and what is made from them. */
import Type, { type Static } from "typebox";
import { snapshotStates } from "../state/snapshot.ts";
import { component, count, flag, message, Name, oneOf, text, time } from "./fields.ts";
import { pageOf } from "./pages.ts";
import { CloneResources, CreateBody, ImageName, SandboxInfo, wait_for_ready } from "./sandboxes.ts";

export const SnapshotBody = Type.Object({
  name: Type.Optional(Name),
  quick: Type.Optional(Type.Boolean({ description: "Do not stand the processes still: the snapshot is crash-consistent.", default: false })),
});
export type SnapshotBody = Static<typeof SnapshotBody>;

export const CloneBody = Type.Object({
  name: Type.Optional(Name),
  snapshot_name: Type.Optional(Name),
  resources: Type.Optional(CloneResources),
  image: Type.Optional(ImageName),
  wait_for_ready,
});
export type CloneBody = Static<typeof CloneBody>;

const { name, resources, env_vars } = CreateBody.properties;
export const RestoreBody = Type.Object({ name, resources, image: Type.Optional(ImageName), env_vars, wait_for_ready });
export type RestoreBody = Static<typeof RestoreBody>;

export const SnapshotInfo = component(
  "Snapshot",
  {
    id: text("The snapshot's id."),
    name: text("Given, or made."),
    source_sandbox_id: text("What it was taken of."),
    source_sandbox_name: text("That sandbox's name."),
    status: oneOf(snapshotStates, { description: "Only a `ready` one can be restored." }),
    created_at: time("The moment that it keeps."),
    consistency: oneOf(["application", "crash"], { description: "`application`: the processes stood still; `crash`: they did not." }),
    size_bytes: count("Bytes of the files that the sandbox had changed."),
    memory: flag("Whether processes and their memory are in it."),
  },
  "A snapshot as the API shows it.",
);
export type SnapshotInfo = Static<typeof SnapshotInfo>;
export const SnapshotPage = pageOf("SnapshotPage", SnapshotInfo);
export type SnapshotPage = Static<typeof SnapshotPage>;
export const Clone = component("Clone", { sandbox: SandboxInfo, snapshot: SnapshotInfo });
export type Clone = Static<typeof Clone>;
export const DeletedSnapshot = component("DeletedSnapshot", {
  message,
  name: text("The snapshot's name."),
  deferred: flag("Always false: it is gone."),
});
export type DeletedSnapshot = Static<typeof DeletedSnapshot>;
