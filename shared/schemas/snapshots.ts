/** Snapshots, and the sandboxes made from them. */
import Type, { type Static } from "typebox";
import { snapshotStates } from "../state/snapshot.ts";
import { component, count, flag, message, Name, oneOf, orNull, pageOf, text, time } from "./fields.ts";
import { CloneResources, CreateBody, ImageName, SandboxInfo, wait_for_ready } from "./sandboxes.ts";

export const SnapshotBody = Type.Object({
  name: Type.Optional(Name),
  quick: Type.Optional(Type.Boolean({ description: "Do not freeze the processes; the snapshot is then only crash-consistent.", default: false })),
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
    name: text("The snapshot's name, given or generated."),
    source_sandbox_id: text("The id of the sandbox that it was taken from."),
    source_sandbox_name: text("That sandbox's name."),
    status: oneOf(snapshotStates, { description: "Only `ready` snapshots can be restored." }),
    created_at: time("The moment whose state the snapshot holds."),
    consistency: oneOf(["application", "crash"], {
      description: "`application`: the processes were frozen while the snapshot was taken; `crash`: they were not.",
    }),
    size_bytes: count("Size in bytes of the files that the sandbox had changed."),
    exclusive_bytes: orNull(Type.Integer({ minimum: 0 }), {
      description: "Disk space on its worker that nothing else uses: what deleting the snapshot frees. Some seconds old; null if the worker cannot tell.",
    }),
    shared_bytes: orNull(Type.Integer({ minimum: 0 }), {
      description: "Disk space on its worker that the snapshot shares with sandboxes and other snapshots. Some seconds old; null if the worker cannot tell.",
    }),
    memory: flag("Whether the snapshot includes processes and their memory."),
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
  deferred: flag("Always false: the snapshot is already deleted."),
});
export type DeletedSnapshot = Static<typeof DeletedSnapshot>;
