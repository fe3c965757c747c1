/** Snapshots, and the sandboxes made from them. */
import Type, { type Static } from "typebox";
import { memoryWishes } from "../memory.ts";
import { snapshotStates } from "../state/snapshot.ts";
import { component, count, ErrorAnswer, flag, message, Name, oneOf, orNull, pageOf, text, textOrNull, time } from "./fields.ts";
import { CloneResources, CreateBody, ImageName, SandboxInfo, wait_for_ready } from "./sandboxes.ts";

const wishBounds = { takes: '"require", "prefer" or "skip"', default: "prefer" };
export const MemoryWish = oneOf(memoryWishes, wishBounds);

/** @param what is asked for, and what is done `instead` */
const wishFor = (what: string, instead: string) => {
  const description = `${what} \`prefer\`: if possible, and otherwise ${instead}, with the reason in \`memory_reason\`; \`require\`: fail with 422 if it is not possible; \`skip\`: ${instead}.`;
  return Type.Optional(oneOf(memoryWishes, { ...wishBounds, description }));
};
const takenMemory = wishFor("Whether to include the processes and their memory.", "take only the files");
const restoredMemory = wishFor("Whether the processes of the snapshot continue in the new sandbox.", "restore only the files");
const copiedMemory = wishFor("Whether the processes continue in the new sandbox as well.", "copy only the files");

export const SnapshotBody = Type.Object({
  name: Type.Optional(Name),
  quick: Type.Optional(
    Type.Boolean({ description: "Do not freeze the processes; the snapshot is then only crash-consistent, and never includes memory.", default: false }),
  ),
  memory: takenMemory,
});
export type SnapshotBody = Static<typeof SnapshotBody>;

export const CloneBody = Type.Object({
  name: Type.Optional(Name),
  snapshot_name: Type.Optional(Name),
  resources: Type.Optional(CloneResources),
  image: Type.Optional(ImageName),
  memory: copiedMemory,
  wait_for_ready,
});
export type CloneBody = Static<typeof CloneBody>;

export const ForkBody = Type.Object({
  count: Type.Integer({ description: "Number of copies.", minimum: 1, maximum: 100, takes: "between 1 and 100 (a whole number)" }),
  name: Type.Optional({ ...Name, description: "The display name of the copies, with `-1`, `-2` and so on if there are several." }),
  resources: Type.Optional(CloneResources),
  memory: copiedMemory,
  wait_for_ready,
});
export type ForkBody = Static<typeof ForkBody>;

const { name, resources, env_vars } = CreateBody.properties;
export const RestoreBody = Type.Object({ name, resources, image: Type.Optional(ImageName), env_vars, memory: restoredMemory, wait_for_ready });
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
    size_bytes: count("Size in bytes of the files that the sandbox had changed, and of the image of its memory."),
    exclusive_bytes: orNull(Type.Integer({ minimum: 0 }), {
      description: "Disk space on its worker that nothing else uses: what deleting the snapshot frees. Some seconds old; null if the worker cannot tell.",
    }),
    shared_bytes: orNull(Type.Integer({ minimum: 0 }), {
      description: "Disk space on its worker that the snapshot shares with sandboxes and other snapshots. Some seconds old; null if the worker cannot tell.",
    }),
    memory: flag("Whether the snapshot includes processes and their memory."),
    memory_reason: textOrNull("Why the snapshot does not include memory although that was asked for; otherwise null."),
    pause_ms: Type.Number({ description: "How long the processes stood still for the snapshot, in milliseconds.", minimum: 0 }),
  },
  "A snapshot as the API shows it.",
);
export type SnapshotInfo = Static<typeof SnapshotInfo>;
export const SnapshotPage = pageOf("SnapshotPage", SnapshotInfo);
export type SnapshotPage = Static<typeof SnapshotPage>;
export const Clone = component("Clone", { sandbox: SandboxInfo, snapshot: SnapshotInfo });
export type Clone = Static<typeof Clone>;
const Copy = component("ForkedSandbox", { sandbox: SandboxInfo });
export const Fork = component("Fork", {
  data: Type.Array(Type.Union([Copy, ErrorAnswer]), { description: "One entry for each copy: the new sandbox, or why it was not made." }),
});
export type Fork = Static<typeof Fork>;
export const DeletedSnapshot = component("DeletedSnapshot", {
  message,
  name: text("The snapshot's name."),
  deferred: flag("Always false: the snapshot is already deleted."),
});
export type DeletedSnapshot = Static<typeof DeletedSnapshot>;
