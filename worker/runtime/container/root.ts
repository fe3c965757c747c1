/** Gives a container that runs without files its root: `exec-server/root.c` has how. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../host/host.ts";
import { programFailure, run } from "../process/run.ts";
import type { Container } from "./container.ts";

const timeoutMs = 10_000;

/** The container cannot have the root, or not all of it: another one has to be made. */
export class RootRefused extends Error {}

/** @param root where it is mounted @returns the ids of the groups in which the superuser is there @throws {RootRefused}, {SandgateError} `unavailable` */
export async function enterRoot({ execServer }: Pick<Host, "execServer">, container: Container, root: string): Promise<number[]> {
  if (execServer === undefined) throw new RootRefused("there is no program for it");
  const { initPid, pidNamespace, bundle } = container;
  const args = ["root", String(initPid), /\d+/.exec(pidNamespace)?.[0] ?? "", root, ...mountsIn(bundle)];
  const result = await run(execServer, args, { timeoutMs });
  if (result.timedOut) throw programFailure("the sandbox could not be given its files", result);
  if (result.exitCode !== 0) throw new RootRefused(result.stderr);
  return (result.stdout.match(/\d+/g) ?? []).map(Number);
}

/**
 * Where the OCI runtime has mounted something: all but what lies below others. The last one is /proc: until it is there, a link of an
 * image leads to no process.
 */
function mountsIn(bundle: string): string[] {
  const { mounts } = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8")) as { readonly mounts: readonly { readonly destination: string }[] };
  const all = [...new Set(mounts.map(({ destination }) => destination))];
  const topmost = all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)));
  return [...topmost.filter((path) => path !== "/proc"), "/proc"];
}
