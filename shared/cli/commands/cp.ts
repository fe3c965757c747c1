/** `cp`. */
import { stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { Presets, SingleBar } from "cli-progress";
import type { Command } from "commander";
import type { OnProgress } from "../../client/transfer.ts";
import { downloadArchive, downloadFile, downloadFolder } from "../copy/download.ts";
import { type Kind, meansContent, type Place, parsePlace, remoteBase, remoteKind, targetPath } from "../copy/places.ts";
import { type Copied, uploadArchive, uploadFile, uploadFolder } from "../copy/upload.ts";
import { CliError, Told, UsageError } from "../failures.ts";
import { findSandbox } from "../names.ts";
import { bytesText, say } from "../output.ts";
import { type CommonOptions, command, type Task, taskOf } from "../task.ts";

async function copy(from: string, to: string, options: CommonOptions & { quiet?: true }): Promise<void> {
  const [source, target] = [parsePlace(from), parsePlace(to)];
  if ((source.kind === "remote") === (target.kind === "remote")) {
    throw new UsageError("one of the two must be SANDBOX:PATH, the other a local path or -");
  }
  if (source.kind === "stream" && process.stdin.isTTY) throw new UsageError("the archive is read from standard input, which must not be a terminal");
  if (target.kind === "stream" && (process.stdout.isTTY || options.json)) {
    throw new UsageError(`the archive goes to standard output, ${options.json ? "where --json cannot print as well" : "which must not be a terminal"}`);
  }
  const task = await taskOf(options);
  const isQuiet = options.quiet === true || task.out.isJson;
  const bar = progressBar("Copying", !isQuiet);
  const copied = await (target.kind === "remote" ? copyIn(task, source, target, bar.on) : copyOut(task, source as Remote, target, bar.on)).finally(() =>
    bar.end(),
  );
  task.out.show(copied, () => isQuiet || say(`Copied ${copied.files} ${copied.files === 1 ? "file" : "files and folders"}, ${bytesText(copied.bytes)}`));
  if (copied.skipped > 0) throw new Told(`${copied.skipped} were skipped`);
}

type Remote = Place & { readonly kind: "remote" };

async function copyIn({ client }: Task, source: Place, target: Remote, onProgress: OnProgress): Promise<Copied> {
  const local = source.kind === "local" ? source.path : undefined;
  const kind = local === undefined ? "folder" : await localKind(local);
  if (kind === "nothing") throw new CliError(`there is no file or folder ${local}`);
  const sandbox = await findSandbox(client, target.sandbox);
  const there = { path: target.path, kind: await remoteKind(sandbox, target.path) };
  if (local === undefined) {
    if (there.kind !== "folder") throw new CliError(`there is no folder ${target.path} in the sandbox`);
    return uploadArchive(sandbox, process.stdin, target.path, onProgress);
  }
  const path = targetPath({ path: local, base: basename(resolve(local)), kind }, there, posix.join);
  return kind === "folder" ? uploadFolder(sandbox, local, path, onProgress) : uploadFile(sandbox, local, path, onProgress);
}

async function copyOut({ client }: Task, source: Remote, target: Place, onProgress: OnProgress): Promise<Copied> {
  const sandbox = await findSandbox(client, source.sandbox);
  const kind = await remoteKind(sandbox, source.path);
  if (kind === "nothing") throw new CliError(`there is no file or folder ${source.path} in the sandbox`);
  const base = remoteBase(source.path);
  if (target.kind !== "local") {
    const folder = kind === "folder" && !meansContent(source.path) ? base : ".";
    return downloadArchive(sandbox, source.path, folder, process.stdout, onProgress);
  }
  const path = targetPath({ path: source.path, base, kind }, { path: target.path, kind: await localKind(target.path) }, join);
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
If the target folder exists, the copy goes into it under its own name. DIR/. means the content of DIR.
Modes, times and links within the folder are kept. Links that lead out of a downloaded folder are not created.
With - as the local path, a tar archive is read from standard input or written to standard output.

Examples:
  sandgate cp ./app web:/work/app
  sandgate cp web:/var/log/app.log .
  sandgate cp ./site/. web:/srv/www
  tar -c src | sandgate cp - web:/work
  sandgate cp web:/work/src - | tar -t`;

export function copyCommands(): Command[] {
  return [
    command("cp SOURCE TARGET", "copy files and folders between SANDBOX:/path and a local path")
      .option("-q, --quiet", "no progress bar and no message")
      .addHelpText("after", help)
      .action(copy),
  ];
}

export interface Progress {
  readonly on: OnProgress;
  end(): void;
}

/** @param isWanted false with `--json`, for example */
export function progressBar(title: string, isWanted: boolean): Progress {
  if (!isWanted || process.stderr.isTTY !== true) return { on: () => {}, end: () => {} };
  const format = (
    { barsize = 30, barCompleteString = "", barIncompleteString = "" },
    { progress, value, total }: { progress: number; value: number; total: number },
  ): string => {
    const done = Math.round(Math.min(1, progress) * barsize);
    const bar = barCompleteString.slice(0, done) + barIncompleteString.slice(0, barsize - done);
    return total > 0 ? `${title} ${bar} ${Math.floor(progress * 100)} %  ${bytesText(value)} of ${bytesText(total)}` : `${title} ${bytesText(value)}`;
  };
  const bar = new SingleBar({ format, barsize: 30, stream: process.stderr, clearOnComplete: true, hideCursor: true, fps: 10 }, Presets.shades_classic);
  let isShown = false;
  return {
    on(done, total) {
      if (isShown) bar.setTotal(total ?? 0);
      else bar.start(total ?? 0, done);
      isShown = true;
      bar.update(done);
    },
    end() {
      if (isShown) bar.stop();
    },
  };
}
