/** Deletes all resources of one kind. */
import { SandgateError } from "../../shared/errors.ts";
import type { DeletedAll } from "../../shared/schemas/sandboxes.ts";
import { Semaphore } from "../../shared/util/mutex.ts";

const deletesAtOnce = 8;

/** Deletes a few at a time. A failure does not stop the others and is listed in the answer. */
export async function deleteAll<T extends { readonly id: string }>(
  kind: "sandbox" | "snapshot",
  items: readonly T[],
  remove: (item: T) => Promise<void>,
): Promise<DeletedAll> {
  const slots = new Semaphore(deletesAtOnce);
  const errors: { id: string; error: string }[] = [];
  const deleted: string[] = [];
  const removeOne = async (item: T): Promise<void> => {
    try {
      await remove(item);
      deleted.push(item.id);
    } catch (error) {
      errors.push({ id: item.id, error: SandgateError.from(error).message });
    }
  };
  await Promise.all(items.map((item) => slots.run(() => removeOne(item))));
  const message = `${deleted.length} ${plural(kind, deleted.length)} deleted`;
  return { deleted_count: deleted.length, deleted_ids: deleted, message, ...(errors.length > 0 ? { errors } : {}) };
}

function plural(kind: "sandbox" | "snapshot", count: number): string {
  if (count === 1) return kind;
  return kind === "sandbox" ? "sandboxes" : "snapshots";
}
