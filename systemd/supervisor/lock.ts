/** A file lock that the kernel releases however its holder ends: the file stays open as long as this process lives. */
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { searchPath } from "../base/search-path.mjs";
import { trustedPath } from "../base/trusted-path.mjs";
import { describeProcess, identify, isRunning, parseProcessId } from "./processes.ts";

const conflict = 75; // EX_TEMPFAIL
const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A held lock. */
export interface Lock {
  release(): void;
}

/** Takes the lock on `file` at once, or returns nothing when another process has it. */
export function tryLock(file: string): Promise<Lock | undefined> {
  return hold(["--nonblock", "--conflict-exit-code", String(conflict)], file);
}

/** Takes the lock on `file`, waiting until its holder releases it. @throws {Error} if `signal` is aborted first. */
export async function waitForLock(file: string, signal: AbortSignal): Promise<Lock> {
  const held = await hold([], file, signal);
  if (!held) throw new Error(`no lock on ${file}`);
  return held;
}

/** Describes the process that holds the lock on `file`. */
export function holderOf(file: string): string {
  const holder = parseProcessId(readFileSync(trustedPath(file), "utf8"));
  return holder && isRunning(holder) ? describeProcess(holder.pid) : "another process";
}

async function hold(options: readonly string[], file: string, signal?: AbortSignal): Promise<Lock | undefined> {
  trustedPath(dirname(file));
  const descriptor = openSync(file, flags, 0o600);
  const release = (): void => closeSync(descriptor);
  try {
    if (await lock(descriptor, options, signal)) {
      ftruncateSync(descriptor);
      writeSync(descriptor, JSON.stringify(identify(process.pid)), 0);
      return { release };
    }
  } catch (error) {
    release();
    throw error;
  }
  release();
  return undefined;
}

/** flock(1) locks our open file and exits; the lock stays with the open file. */
async function lock(descriptor: number, options: readonly string[], signal?: AbortSignal): Promise<boolean> {
  const how: SpawnOptions = { env: { PATH: searchPath }, stdio: ["ignore", "ignore", "ignore", descriptor], detached: true };
  const [code] = (await once(spawn("flock", [...options, "3"], { ...how, ...(signal ? { signal } : {}) }), "exit")) as [number | null];
  if (code !== 0 && code !== conflict) throw new Error(`flock ended with ${code}`);
  return code === 0;
}
