/** What users may give to name an object: an id, a name, or the start of an id. */
import type { Sandgate } from "../client/index.ts";
import type { SandboxHandle, Snapshot } from "../client/sandbox.ts";
import { CliError } from "./failures.ts";
import { say } from "./output.ts";

interface Named {
  readonly id: string;
  readonly name: string;
}

const idLength = { sandbox: "sb_".length + 26, snapshot: "snap_".length + 26 } as const;
const prefixMin = 2;

/** Accepts a full id without a call. @throws {CliError} if the name matches no sandbox or several */
export async function findSandbox(client: Sandgate, name: string): Promise<SandboxHandle> {
  if (name.startsWith("sb_") && name.length === idLength.sandbox) return client.sandbox(name);
  return client.sandbox(pick("sandbox", await client.sandboxes.find(name), name).id);
}

/** Warns if other sandboxes have the same name as a new one, so that later commands need its id. */
export async function warnOfNamesakes(client: Sandgate, { id, name }: Named): Promise<void> {
  // The sandbox exists, even if this check fails.
  const found = await client.sandboxes.find(name).catch(() => []);
  const others = found.filter((one) => one.name === name && one.id !== id).map((one) => one.id);
  if (others.length === 0) return;
  const are = others.length === 1 ? "another sandbox is" : `${others.length} other sandboxes are`;
  say(`sandgate: ${are} also called ${name} (${others.join(", ")}): use ids to tell them apart; this one is ${id}`);
}

/** @throws {CliError} if the name matches no snapshot or several */
export async function findSnapshot(client: Sandgate, name: string): Promise<Snapshot> {
  if (name.startsWith("snap_") && name.length === idLength.snapshot) return client.snapshots.get(name);
  return pick("snapshot", await client.snapshots.list().all(), name);
}

/** Picks an item by its id, else by its full name, else by the start of its id. */
export function pick<T extends Named>(kind: "sandbox" | "snapshot" | "session", items: readonly T[], name: string): T {
  const exact = items.filter((item) => item.id === name);
  const named = items.filter((item) => item.name === name);
  const begun = name.length >= prefixMin ? items.filter(({ id }) => id.startsWith(name) || id.slice(id.indexOf("_") + 1).startsWith(name)) : [];
  const found = [exact, named, begun].find(({ length }) => length > 0) ?? [];
  const [only, ...more] = found;
  if (!only) throw new CliError(`there is no ${kind} ${name}`);
  if (more.length === 0) return only;
  const candidates = found.map((item) => `  ${item.id}  ${item.name}`).join("\n");
  throw new CliError(`${name} can be any of these ${found.length} ${plural(kind)}; use an id:\n${candidates}`);
}

function plural(kind: "sandbox" | "snapshot" | "session"): string {
  return kind === "sandbox" ? "sandboxes" : `${kind}s`;
}
