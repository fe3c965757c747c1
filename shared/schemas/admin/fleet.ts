/** The operator's calls about workers, their images and the sandboxes of everybody. */
import Type, { type Static } from "typebox";
import { component, count, flag, idOf, message, text, textOrNull, timeOrNull } from "../fields.ts";
import { PageQuery, pageOf } from "../pages.ts";
import { sandboxMembers } from "../sandboxes.ts";

const worker_id = Type.Optional(idOf("Only on this worker."));

export const DrainBody = Type.Object({ on: Type.Optional(flag("`false` lets the worker take new sandboxes again. True when absent.")) });
export type DrainBody = Static<typeof DrainBody>;

export const Worker = component("Worker", {
  id: text("The worker."),
  present: Type.Literal(true, { description: "It is there." }),
  draining: flag("It is stopping."),
  cordoned: flag("It takes no new sandboxes."),
  sandboxes: count("It has."),
  sandboxes_max: count("It takes."),
  memory_free_bytes: count("On its host."),
  disk_free_bytes: count("On its host."),
  load_per_cpu: Type.Number({ description: "Of its host." }),
  not_enforced: Type.Array(Type.String(), { description: "Limits that its host lacks." }),
});
export type Worker = Static<typeof Worker>;
export const GoneWorker = component("GoneWorker", {
  id: text("The worker."),
  present: Type.Literal(false, { description: "It is gone." }),
  sandboxes: count("In the directory."),
});
export type GoneWorker = Static<typeof GoneWorker>;
export const WorkerInfo = Type.Union([Worker, GoneWorker]);
export type WorkerInfo = Static<typeof WorkerInfo>;
export const Workers = component("Workers", { data: Type.Array(WorkerInfo) });
export type Workers = Static<typeof Workers>;
export const DrainedWorker = component("DrainedWorker", { id: text("The worker."), cordoned: flag("It takes no new sandboxes."), message });
export type DrainedWorker = Static<typeof DrainedWorker>;
export const ForgottenWorker = component("ForgottenWorker", { id: text("The worker."), message, forgotten_sandboxes: count("Taken out of the directory.") });
export type ForgottenWorker = Static<typeof ForgottenWorker>;

export const ImagesQuery = Type.Object({ worker_id });
export type ImagesQuery = Static<typeof ImagesQuery>;
export const ImageInfo = component("Image", {
  worker_id: text("Where it is."),
  id: text("Its own id, which no other image can have."),
  names: Type.Array(Type.String(), { description: "Its whole names." }),
  size_bytes: count("With the layers that it shares with others."),
  last_used_at: timeOrNull("When a sandbox was last made of it; null before the first."),
  in_use: flag("A sandbox or snapshot needs it."),
  default: flag("It is the one that `default` means."),
});
export type ImageInfo = Static<typeof ImageInfo>;
export const Images = component("Images", { data: Type.Array(ImageInfo) });
export type Images = Static<typeof Images>;
export const RemovedImage = component("RemovedImage", {
  id: text("The image."),
  message,
  workers: Type.Array(Type.String(), { description: "Where it was." }),
});
export type RemovedImage = Static<typeof RemovedImage>;

export const SandboxesQuery = Type.Object({ ...PageQuery.properties, account_id: Type.Optional(idOf("Only of this account.")), worker_id });
export type SandboxesQuery = Static<typeof SandboxesQuery>;
export const AdminSandbox = component("AdminSandbox", {
  ...sandboxMembers,
  account_id: text("Whose it is."),
  key_id: text("The key, or account, that it counts against."),
  worker_id: text("Where it is."),
  error: textOrNull("Why it cannot be used."),
});
export type AdminSandbox = Static<typeof AdminSandbox>;
export const AdminSandboxPage = pageOf("AdminSandboxPage", AdminSandbox);
export type AdminSandboxPage = Static<typeof AdminSandboxPage>;
export const AdminDeletedSandbox = component("AdminDeletedSandbox", {
  id: text("The sandbox."),
  account_id: text("Whose it was."),
  message,
  storage_deleted: flag("The files are gone."),
});
export type AdminDeletedSandbox = Static<typeof AdminDeletedSandbox>;
