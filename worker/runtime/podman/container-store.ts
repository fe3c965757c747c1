/**
 * Where Podman keeps what it knows of a worker's containers: with the worker's short-lived files, apart from the images. These are in
 * memory, and Podman writes some thirty times to make and remove a container; it would wait for the disk each time. Nothing is lost
 * with it but processes, which do not survive it either: a container that is not known any more is made again over the files of its
 * sandbox.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { startTimeOf } from "../process/proc.ts";

/** The file systems of containers are not Podman's, so that the simplest driver does. */
const driver = "vfs";

/** The folders below the one that all of Podman's stores have in memory where monitors leave their process ids: of this version, and of a former one. */
export const monitorFolders: readonly string[] = [`${driver}-containers`, "overlay-containers"];

/** @param scratch the worker's folder for short-lived files */
export const containerStoreIn = (scratch: string): string => join(scratch, "containers");

/** What Podman leaves there until it is to forget the states of containers. */
const shortLived = (store: string): string => join(store, "tmp");

/** The options by which podman works on these containers. */
export const optionsFor = (store: string): string[] => ["--root", store, "--storage-driver", driver, "--tmpdir", shortLived(store)];

/** Where monitors report to Podman that containers have ended. */
export const reportsIn = (store: string): string => join(shortLived(store), "exits");

/**
 * Opens the store, which outlives the worker's process as its containers do. When Podman's namespace is another one than they were
 * started in, Podman begins as after a restart of the machine: none of them can be reached any more.
 *
 * @param runDir the folder in memory of this installation's Podman
 * @returns its path
 */
export function openContainerStore(scratch: string, runDir: string): string {
  const store = containerStoreIn(scratch);
  mkdirSync(store, { recursive: true, mode: 0o700 });
  const noted = join(store, "namespace");
  const pause = attempt(() => readFileSync(join(runDir, "libpod/tmp/pause.pid"), "utf8").trim()) ?? "";
  const namespace = `${pause} ${startTimeOf(Number(pause))}`;
  if (attempt(() => readFileSync(noted, "utf8")) === namespace) return store;
  rmSync(join(shortLived(store), "alive"), { force: true });
  writeFileSync(noted, namespace);
  return store;
}
