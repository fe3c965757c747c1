/** backup, restore. These commands work on the files of the installation on this machine. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { programFile } from "../../programs.mjs";
import { confirm } from "../confirm.ts";
import { bytesText, Output, say } from "../output.ts";
import type { AdminOptions } from "./task.ts";

export interface BackupResult {
  readonly dir: string;
  readonly created_at: string;
  readonly bytes: number;
  /** Ids of snapshots whose files only their workers have. */
  readonly snapshots_without_files: readonly string[];
}

export interface RestoreOptions {
  /** Whether an installation with data is moved aside. */
  readonly replace?: boolean;
}

export interface RestoreResult {
  readonly data_dir: string;
  /** When the backup was made. */
  readonly created_at: string;
  /** How many sandboxes there were on this machine, whose files are in no backup. */
  readonly sandboxes_without_files: number;
  readonly snapshots_without_files: readonly string[];
  /** Where what was replaced is now. */
  readonly replaced: readonly string[];
  /** Whether it runs as services of systemd. */
  readonly services: boolean;
}

/** What is done on this machine, as the user who runs the installation. */
export interface Backups {
  /** @param dir an absolute path */
  backup(dir: string): Promise<BackupResult>;
  restore(dir: string, options: RestoreOptions): Promise<RestoreResult>;
}

/** Part of the start-up scripts, on which nothing in this folder depends otherwise. */
const here = async (): Promise<Backups> => ((await import(programFile("systemd/backup/backups.ts"))) as { backups: Backups }).backups;

async function backup(dir: string, _: unknown, command: Command): Promise<void> {
  const result = await (await here()).backup(resolve(dir));
  const out = new Output(command.optsWithGlobals<AdminOptions>().json ?? false);
  out.show(result, () => out.text(`${result.dir} has everything as of ${result.created_at} (${bytesText(result.bytes)}). It contains secrets.`));
  tellOfSnapshots(result.snapshots_without_files, "are not in it, because their files were not in the object store yet");
}

async function restore(dir: string, _: unknown, command: Command): Promise<void> {
  const { json, yes, replace = false } = command.optsWithGlobals<AdminOptions & RestoreOptions>();
  if (replace && !yes) await confirm("Move the present installation aside, with all of its sandboxes?", "--yes");
  const result = await (await here()).restore(resolve(dir), { replace });
  const out = new Output(json ?? false);
  out.show(result, () => tellRestored(out, result));
  tellOfSnapshots(result.snapshots_without_files, "are lost: their files were not in the object store when the backup was made");
}

function tellRestored(out: Output, { data_dir, created_at, sandboxes_without_files: lost, replaced, services }: RestoreResult): void {
  out.text(`${data_dir} is as it was at ${created_at}.`);
  for (const path of replaced) out.text(`What was replaced is in ${path}; remove it when you need it no longer.`);
  if (lost > 0) out.text(`${lost} sandboxes had their files on that machine: unless these are still there, they will be shown with status error.`);
  out.text(services ? "Start it: systemctl start sandgate-setup.service sandgate.target, or systemd/install on a new machine." : "Start it: npm start");
}

function tellOfSnapshots(ids: readonly string[], what: string): void {
  if (ids.length > 0) say(`${ids.length} snapshots ${what}: ${ids.join(", ")}`);
}

export function addBackupCommands(admin: Command): void {
  admin
    .command("backup <DIR>")
    .description("copy everything that this installation keeps into a new folder, while it runs (where the NATS server runs)")
    .action(backup);
  admin
    .command("restore <DIR>")
    .description("make the installation on this machine what a backup has; it must not run")
    .option("--replace", "move an installation that is there aside")
    .action(restore);
}
