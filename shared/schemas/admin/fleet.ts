/** The operator's calls for workers, their images and the sandboxes of all accounts. */
import Type, { type Static } from "typebox";
import { component, count, flag, idOf, message, PageQuery, pageOf, text, textOrNull, timeOrNull } from "../fields.ts";
import { sandboxMembers } from "../sandboxes.ts";
import { hostMembers } from "../service.ts";

const worker_id = Type.Optional(idOf("Only this worker."));

export const DrainBody = Type.Object({ on: Type.Optional(flag("`false` lets the worker accept new sandboxes again. Defaults to true.")) });
export type DrainBody = Static<typeof DrainBody>;

export const Worker = component("Worker", {
  id: text("The worker's id."),
  present: Type.Literal(true, { description: "The worker is present." }),
  draining: flag("Whether the worker is shutting down."),
  cordoned: flag("Whether the worker accepts no new sandboxes."),
  sandboxes: count("Number of sandboxes on the worker."),
  sandboxes_max: count("Maximum number of sandboxes on the worker."),
  memory_free_bytes: count("Free memory of its host in bytes."),
  disk_free_bytes: count("Free disk space of its host in bytes."),
  load_per_cpu: Type.Number({ description: "Load average of its host per CPU." }),
  ...hostMembers,
});
export type Worker = Static<typeof Worker>;
export const GoneWorker = component("GoneWorker", {
  id: text("The worker's id."),
  present: Type.Literal(false, { description: "The worker is gone." }),
  sandboxes: count("Number of its sandboxes in the directory."),
});
export type GoneWorker = Static<typeof GoneWorker>;
export const WorkerInfo = Type.Union([Worker, GoneWorker]);
export type WorkerInfo = Static<typeof WorkerInfo>;
export const Workers = component("Workers", { data: Type.Array(WorkerInfo) });
export type Workers = Static<typeof Workers>;
export const DrainedWorker = component("DrainedWorker", {
  id: text("The worker's id."),
  cordoned: flag("Whether the worker accepts no new sandboxes."),
  message,
});
export type DrainedWorker = Static<typeof DrainedWorker>;
export const ForgottenWorker = component("ForgottenWorker", {
  id: text("The worker's id."),
  message,
  forgotten_sandboxes: count("Number of sandboxes removed from the directory."),
});
export type ForgottenWorker = Static<typeof ForgottenWorker>;

export const ImagesQuery = Type.Object({ worker_id });
export type ImagesQuery = Static<typeof ImagesQuery>;
export const ImageInfo = component("Image", {
  worker_id: text("The worker that has the image."),
  id: text("The image's id, which identifies its content."),
  names: Type.Array(Type.String(), { description: "The image's full names." }),
  size_bytes: count("Size in bytes, including layers shared with other images."),
  last_used_at: timeOrNull("When a sandbox was last created from the image; null if never."),
  in_use: flag("Whether a sandbox or snapshot needs the image."),
  default: flag("Whether this is the image that `default` refers to."),
});
export type ImageInfo = Static<typeof ImageInfo>;
export const Images = component("Images", { data: Type.Array(ImageInfo) });
export type Images = Static<typeof Images>;
export const RemovedImage = component("RemovedImage", {
  id: text("The image's id."),
  message,
  workers: Type.Array(Type.String(), { description: "The workers it was removed from." }),
});
export type RemovedImage = Static<typeof RemovedImage>;

export const SandboxesQuery = Type.Object({ ...PageQuery.properties, account_id: Type.Optional(idOf("Only sandboxes of this account.")), worker_id });
export type SandboxesQuery = Static<typeof SandboxesQuery>;
export const AdminSandbox = component("AdminSandbox", {
  ...sandboxMembers,
  account_id: text("The account that the sandbox belongs to."),
  key_id: text("The key or account that the sandbox counts against."),
  worker_id: text("The worker that the sandbox is on."),
  error: textOrNull("Why the sandbox cannot be used; null if it can."),
});
export type AdminSandbox = Static<typeof AdminSandbox>;
export const AdminSandboxPage = pageOf("AdminSandboxPage", AdminSandbox);
export type AdminSandboxPage = Static<typeof AdminSandboxPage>;
export const AdminDeletedSandbox = component("AdminDeletedSandbox", {
  id: text("The sandbox's id."),
  account_id: text("The account that the sandbox belonged to."),
  message,
  storage_deleted: flag("Whether the files have been deleted."),
});
export type AdminDeletedSandbox = Static<typeof AdminDeletedSandbox>;

export const MoveBody = Type.Object({ worker_id: Type.Optional(idOf("The worker to move it to. By default the one with the most room.")) });
export type MoveBody = Static<typeof MoveBody>;
export const MovedSandbox = component("MovedSandbox", {
  id: text("The sandbox's id, which stays the same."),
  account_id: text("The account that the sandbox belongs to."),
  from: text("The worker that it was on."),
  to: text("The worker that it is on now."),
  ended_commands: count("Number of commands that were running by calls and were ended."),
  ended_sessions: count("Number of sessions that were ended."),
  memory_restored: flag("Whether its processes continue on the other worker. If not, it has only its files there."),
  memory_reason: textOrNull("Why its processes do not continue; null if they do."),
  message,
});
export type MovedSandbox = Static<typeof MovedSandbox>;
