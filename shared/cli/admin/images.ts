/** images, images rm. */
import type { Command } from "commander";
import { UsageError } from "../failures.ts";
import { ago, bytesText } from "../output.ts";
import { type AdminOptions, type AdminTask, doing, forEachId } from "./task.ts";

type ImageOptions = AdminOptions & { worker?: string };

const shownIdChars = 12;

async function list({ client, out }: AdminTask, { worker }: ImageOptions): Promise<void> {
  const data = await client.admin.images.list({ worker_id: worker });
  const rows = data.map(({ worker_id, id, names, size_bytes, last_used_at, in_use, default: isDefault }) => [
    id.slice(0, shownIdChars),
    names.join(", ") || null,
    bytesText(size_bytes),
    ago(last_used_at),
    isDefault ? "default" : in_use ? "yes" : "no",
    worker_id,
  ]);
  out.show({ data }, () => out.table(["ID", "NAMES", "SIZE", "LAST USED", "IN USE", "WORKER"], rows, "No images."));
}

/** Removes images given by the id that the list shows, or by name. */
async function remove(task: AdminTask, { worker: worker_id }: ImageOptions, wanted: string[]): Promise<void> {
  const { images } = task.client.admin;
  await task.confirm(`Remove ${wanted.length === 1 ? wanted[0] : `${wanted.length} images`}?`);
  const data = await images.list({ worker_id });
  const idOf = (text: string): string => {
    const meant = new Set(data.filter(({ id, names }) => (text.length >= shownIdChars && id.startsWith(text)) || names.includes(text)).map(({ id }) => id));
    if (meant.size > 1) throw new UsageError(`${text} stands for several images`);
    return [...meant][0] ?? text;
  };
  await forEachId(task, wanted.map(idOf), (id) => images.remove(id, { worker_id }), "removed");
}

export function addImageCommands(admin: Command): void {
  const images = admin
    .command("images")
    .description("list the images of all workers, or of one --worker; `images rm` removes unused ones")
    .option("--worker <worker>", "only those on this worker")
    .action(doing(list));
  images.command("rm <IMAGE...>").description("remove unused images, given by the id that the list shows or by name").action(doing(remove));
}
