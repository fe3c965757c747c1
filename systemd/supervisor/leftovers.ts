/** Records the running parts on disk, and ends those whose supervisor was killed before it could stop them. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../shared/waiting.ts";
import type { Terminal } from "../base/terminal.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import { isRunning, type ProcessId, parseProcessId, signalProcess } from "./processes.ts";

const suffix = ".process.json";

/** Records that `name` runs as `process`. */
export async function noteProcess(folder: string, name: string, process: ProcessId): Promise<void> {
  await replaceFile(join(folder, name + suffix), JSON.stringify(process), { mode: 0o600 });
}

/** Removes the record of a part that has ended. */
export async function forgetProcess(folder: string, name: string): Promise<void> {
  await rm(join(folder, name + suffix), { force: true });
}

/** Ends the parts that an earlier supervisor has left running: by SIGTERM, then after `patienceMs` by SIGKILL. */
export async function endLeftovers(folder: string, patienceMs: number, terminal: Terminal): Promise<void> {
  const leftovers = (await readNotes(folder)).filter(({ process }) => isRunning(process));
  if (leftovers.length > 0) {
    const names = leftovers.map(({ name, process }) => `${name} (process ${process.pid})`).join(", ");
    await terminal.task("Ending what an earlier run has left", names, () =>
      end(
        leftovers.map(({ process }) => process),
        patienceMs,
      ),
    );
  }
  for (const { name } of await readNotes(folder)) await forgetProcess(folder, name);
}

/** The names of the recorded parts that are running. */
export async function runningParts(folder: string): Promise<string[]> {
  return (await readNotes(folder)).filter(({ process }) => isRunning(process)).map(({ name }) => name);
}

async function end(processes: readonly ProcessId[], patienceMs: number): Promise<void> {
  for (const process of processes) signalProcess(process, "SIGTERM");
  const areGone = (): boolean => !processes.some(isRunning);
  if (await until(areGone, { timeoutMs: patienceMs, pollMs: 50 })) return;
  for (const process of processes) signalProcess(process, "SIGKILL");
  await until(areGone, { pollMs: 50 });
}

async function readNotes(folder: string): Promise<{ name: string; process: ProcessId }[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(suffix));
  const notes = await Promise.all(
    files.map(async (file) => {
      const process = parseProcessId((await readIfThere(join(folder, file))) ?? "");
      return process ? [{ name: file.slice(0, -suffix.length), process }] : [];
    }),
  );
  return notes.flat();
}
