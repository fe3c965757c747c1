/** The work of `sandgate-admin backup` and `restore`. */
import type { Backups } from "../../shared/cli/admin/backup.ts";
import { searchPath } from "../base/search-path.mjs";
import { Terminal } from "../base/terminal.ts";
import { listenForStop } from "../supervisor/stop-request.ts";
import { backup } from "./backup.ts";
import { restore } from "./restore.ts";

/** Progress goes to standard error: standard output is for the result. */
async function doing<T>(work: (terminal: Terminal, signal: AbortSignal) => Promise<T>): Promise<T> {
  process.env.PATH = searchPath;
  const { signal } = listenForStop();
  try {
    return await work(new Terminal(process.stderr), signal);
  } catch (error) {
    if (signal.aborted) throw new Error("Interrupted; nothing was left behind.", { cause: error });
    throw error;
  }
}

export const backups: Backups = {
  backup: (dir) => doing((terminal, signal) => backup(dir, terminal, signal)),
  restore: (dir, options) => doing((terminal, signal) => restore(dir, options, terminal, signal)),
};
