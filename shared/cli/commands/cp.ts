/** `cp`. */
import { stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import type { Command } from "commander";
import type { OnProgress } from "../../client/transfer.ts";
import { command } from "../command.ts";
import { downloadFile, downloadFolder } from "../copy/download.ts";
import { type Kind, type Place, parsePlace, remoteBase, remoteKind, targetPath } from "../copy/places.ts";
import { type Copied, uploadFile, uploadFolder } from "../copy/upload.ts";
import { CliError, Told, UsageError } from "../failures.ts";
import { findSandbox } from "../names.ts";
import { bytesText, say } from "../output.ts";
import { progressBar } from "../progress.ts";
import { type CommonOptions, type Task, taskOf } from "../task.ts";

async function copy(from: string, to: string, options: CommonOptions & { quiet?: true }): Promise<void> {
  const [source, target] = [parsePlace(from), parsePlace(to)];
  if (source.kind === target.kind) throw new UsageError("one of the two must be SANDBOX:PATH, and the other a path of this machine");
  const task = await taskOf(options);
  const isQuiet = options.quiet === true || task.out.isJson;
  const bar = progressBar("Copying", !isQuiet);
  const copied = await (source.kind === "local" ? copyIn(task, source, target, bar.on) : copyOut(task, source, target, bar.on)).finally(() => bar.end());
  task.out.show(copied, () => isQuiet || say(`Copied ${copied.files} ${copied.files === 1 ? "file" : "files and folders"}, ${bytesText(copied.bytes)}`));
  if (copied.skipped > 0) throw new Told(`${copied.skipped} were left out`);
}

async function copyIn({ client }: Task, { path: local }: Place, target: Place, onProgress: OnProgress): Promise<Copied> {
  const kind = await localKind(local);
  if (kind === "nothing") throw new CliError(`there is no file or folder ${local}`);
  const sandbox = await findSandbox(client, target.kind === "remote" ? target.sandbox : "");
  const path = targetPath(
    { path: local, base: basename(resolve(local)), kind },
    { path: target.path, kind: await remoteKind(sandbox, target.path) },
    posix.join,
  );
  return kind === "folder" ? uploadFolder(sandbox, local, path, onProgress) : uploadFile(sandbox, local, path, onProgress);
}

async function copyOut({ client }: Task, source: Place, { path: local }: Place, onProgress: OnProgress): Promise<Copied> {
  const sandbox = await findSandbox(client, source.kind === "remote" ? source.sandbox : "");
  const kind = await remoteKind(sandbox, source.path);
  if (kind === "nothing") throw new CliError(`there is no file or folder ${source.path} in the sandbox`);
  const path = targetPath({ path: source.path, base: remoteBase(source.path), kind }, { path: local, kind: await localKind(local) }, join);
  return kind === "folder" ? downloadFolder(sandbox, source.path, path, onProgress) : downloadFile(sandbox, source.path, path, onProgress);
}

async function localKind(path: string): Promise<Kind> {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!info) return "nothing";
  return info.isDirectory() ? "folder" : "file";
}

const help = `
A folder that is there gets the copy in it, under its own name; DIR/. means what is in DIR.
Modes, times and links within the folder stay. Links that lead out of a copied folder are not made here.

Examples:
  sandgate cp ./app web:/work/app
  sandgate cp web:/var/log/app.log .
  sandgate cp ./site/. web:/srv/www`;

export function copyCommands(): Command[] {
  return [
    command("cp SOURCE TARGET", "copy files and folders: SANDBOX:/path to a path of this machine, or back")
      .option("-q, --quiet", "no progress bar and no message")
      .addHelpText("after", help)
      .action(copy),
  ];
}
