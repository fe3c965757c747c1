/** The operator's calls about the images of workers. */

import type { ImageEntry } from "../../../shared/bus/contract/operators.ts";
import { SandgateError } from "../../../shared/errors.ts";
import { errors } from "../../../shared/known-errors.ts";
import type { ImageInfo, Images, ImagesQuery, RemovedImage } from "../../../shared/schemas/admin/fleet.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";
import { refOf, type WorkerRef } from "../../fleet/placement.ts";

/** The images of all workers that are there, or of the one that the query names; the last used first. */
export async function listImages(context: GatewayContext, { by, query }: Call<ImagesQuery, unknown>): Promise<Images> {
  const lists = await Promise.all(
    asked(context, query.worker_id).map(async (worker) => {
      const { images } = await context.workers.call(worker, "images", { request_id: by.request_id });
      return images.sort((one, other) => (other.used_at_ms ?? 0) - (one.used_at_ms ?? 0)).map((image) => view(worker.id, image));
    }),
  );
  return { data: lists.flat() };
}

/**
 * Removes an image from every worker that has it, or from the one that the query names. Where one of several still needs
 * it, the others have removed it all the same.
 *
 * @throws {SandgateError} `not_found`, `conflict` when it is in use or the default one
 */
export async function removeImage(context: GatewayContext, { by, id, query }: Call<ImagesQuery, unknown>): Promise<RemovedImage> {
  const workers = asked(context, query.worker_id);
  const outcomes = await Promise.allSettled(workers.map((worker) => context.workers.call(worker, "removeImage", { request_id: by.request_id, id })));
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  const isMissing = (error: unknown): boolean => error instanceof SandgateError && error.code === "not_found";
  const failure = failures.find((error) => !isMissing(error));
  if (failure) throw failure;
  if (failures.length === workers.length) throw errors.notFound("image", id);
  const removedFrom = workers.filter((_, index) => outcomes[index]?.status === "fulfilled").map((worker) => worker.id);
  return { id, message: "Image removed", workers: removedFrom };
}

/** @throws {SandgateError} `not_found` */
function asked({ workers }: GatewayContext, workerId: string | undefined): WorkerRef[] {
  const present = workers.workers().map(refOf);
  const meant = present.filter(({ id }) => workerId === undefined || id === workerId).sort((a, b) => (a.id < b.id ? -1 : 1));
  if (workerId !== undefined && meant.length === 0) throw errors.notFound("worker", workerId);
  return meant;
}

function view(worker_id: string, { id, names, size_bytes, used_at_ms, in_use, default: isDefault }: ImageEntry): ImageInfo {
  return { worker_id, id, names, size_bytes, last_used_at: used_at_ms === undefined ? null : new Date(used_at_ms).toISOString(), in_use, default: isDefault };
}
