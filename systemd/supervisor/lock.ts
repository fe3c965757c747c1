/** A lock that the kernel gives back however its holder ends: flock(1) in a helper process that lives as long as we do. */
import { spawn } from "node:child_process";
import { once } from "node:events";

const conflict = 75; // EX_TEMPFAIL

/** A held lock. */
export interface Lock {
  release(): void;
}

/** Takes the lock on `file` at once, or returns nothing when another process has it. */
export function tryLock(file: string): Promise<Lock | undefined> {
  return hold(["--nonblock", "--conflict-exit-code", String(conflict)], file);
}

/** Takes the lock on `file`, waiting for whoever has it. */
export async function waitForLock(file: string): Promise<Lock> {
  const lock = await hold([], file);
  if (!lock) throw new Error(`no lock on ${file}`);
  return lock;
}

/** The helper ends at the end of its input, which the kernel sends when this process is gone. */
async function hold(options: readonly string[], file: string): Promise<Lock | undefined> {
  const args = [...options, "--no-fork", file, "sh", "-c", "echo held && exec cat > /dev/null"];
  // A session of its own keeps the terminal's Ctrl-C away from it.
  const helper = spawn("flock", args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const ended = once(helper, "exit").then(([code]) => code as number | null);
  const held = once(helper.stdout, "data").then(() => "held" as const);
  const outcome = await Promise.race([held, ended]);
  if (outcome === conflict) return undefined;
  if (outcome !== "held") throw new Error(`flock ${file} failed`);
  helper.unref();
  return { release: () => void helper.stdin.end() };
}
