/** images, images rm. */
import type { Command, Session } from "../command.ts";
import { UsageError } from "../failures.ts";
import { ago, mebibytes } from "../output.ts";
import { forEach } from "./for-each.ts";

export interface ImageView {
  readonly worker_id: string;
  readonly id: string;
  readonly names: readonly string[];
  readonly size_bytes: number;
  readonly last_used_at: string | null;
  readonly in_use: boolean;
  readonly default: boolean;
}

const path = "/v1/admin/images";
const shownIdChars = 12;

const queryOf = ({ values: { worker } }: Session): string => (worker === undefined ? "" : `?${new URLSearchParams({ worker_id: worker })}`);

async function images(session: Session): Promise<void> {
  const [verb, ...ids] = session.operands;
  if (verb === undefined) return list(session);
  if (verb !== "rm") throw new UsageError(`images does not take ${JSON.stringify(verb)}`);
  if (ids.length === 0) throw new UsageError("images rm needs IMAGE…");
  await remove(session, ids);
}

async function list(session: Session): Promise<void> {
  const { client, out } = session;
  const answer = await client.call<{ data: readonly ImageView[] }>("GET", path + queryOf(session));
  const rows = answer.data.map(({ worker_id, id, names, size_bytes, last_used_at, in_use, default: isDefault }) => ({
    cells: [
      id.slice(0, shownIdChars),
      names.join(", ") || null,
      mebibytes(size_bytes),
      ago(last_used_at),
      isDefault ? "default" : in_use ? "yes" : "no",
      worker_id,
    ],
  }));
  out.show(answer, () => out.table(["ID", "NAMES", "SIZE", "LAST USED", "IN USE", "WORKER"], rows, "No images."));
}

/** By the id that the list shows, or by a name. */
async function remove(session: Session, wanted: readonly string[]): Promise<void> {
  const { client } = session;
  await session.confirm(`Remove ${wanted.length === 1 ? wanted[0] : `${wanted.length} images`}?`);
  const { data } = await client.call<{ data: readonly ImageView[] }>("GET", path + queryOf(session));
  const idOf = (text: string): string => {
    const meant = new Set(data.filter(({ id, names }) => (text.length >= shownIdChars && id.startsWith(text)) || names.includes(text)).map(({ id }) => id));
    if (meant.size > 1) throw new UsageError(`${text} stands for several images`);
    return [...meant][0] ?? text;
  };
  const operands = wanted.map(idOf);
  await forEach({ ...session, operands }, (id) => client.call("DELETE", `${path}/${encodeURIComponent(id)}${queryOf(session)}`), "removed");
}

export const imageCommands: readonly Command[] = [
  {
    name: "images",
    takes: "[rm IMAGE…]",
    about: "list the images of all workers, or of one --worker; remove some that are not in use",
    options: ["worker"],
    min: 0,
    max: Number.POSITIVE_INFINITY,
    run: images,
  },
];
