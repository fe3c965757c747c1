/** Whose the files of a backup were, by name: another machine has other ids. */
import Type, { type Static } from "typebox";
import { run } from "../base/run.ts";
import type { Ownership } from "../base/write-file.ts";

/** Nobody but the owner changes a restored file. */
const modesMax = 0o755;

export const Owner = Type.Object({ mode: Type.Integer(), user: Type.String(), group: Type.String() });
export type Owner = Static<typeof Owner>;

/** Of the file that a path leads to. */
export async function ownerOf(path: string): Promise<Owner> {
  const [mode = "", user = "", group = ""] = (await run(["stat", "--dereference", "--format=%a:%U:%G", "--", path])).split(":");
  return { mode: Number.parseInt(mode, 8), user, group };
}

/** For the file on this machine. Root's alone where nothing is known, or the user does not exist here; this user's, if that is not root. */
export async function ownershipOf({ owner }: { readonly owner?: Owner }): Promise<Ownership> {
  if (!owner) return { mode: 0o600 };
  const mode = owner.mode & modesMax;
  if (process.getuid?.() !== 0) return { mode };
  const id = async (database: "passwd" | "group", name: string): Promise<number> =>
    Number((await run(["getent", database, name]).catch(() => "")).split(":")[2] ?? 0);
  return { mode, uid: await id("passwd", owner.user), gid: await id("group", owner.group) };
}
