/**
 * Starts programs: every program the worker runs is started here, from an argument list, never from a command line. A small
 * helper process (`helperScript`) does so; it is created on first use, and again after it has ended.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import type { Socket } from "node:net";
import { arch } from "node:process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { SandgateError } from "../../../shared/errors.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { backoffMs } from "../../../shared/waiting.ts";
import { helperScript } from "./helper-script.ts";
import { lowPriority, oomScoreAdj } from "./priority.ts";

/** The numbers of signalfd4(2) and rt_sigprocmask(2). */
const callNumbers = arch === "arm64" ? ["74", "135"] : ["289", "14"];

/** A helper that ends sooner than this after its start is restarted only after a pause, which doubles each time. */
const soonMs = 5_000;
const pauses = { firstMs: 10, maxMs: 1_000 };

/** A requested program. */
interface Launch {
  /** Its process id; undefined when it could not be started. */
  readonly pid: Promise<number | undefined>;
  /** Its exit code, 128+n when signal n ended it. @throws {SandgateError} `internal_error` when it could not be started, or is lost with the helper. */
  readonly exited: Promise<number>;
}

interface Pending {
  readonly pid: PromiseWithResolvers<number | undefined>;
  readonly exited: PromiseWithResolvers<number>;
}

type Child = ChildProcessByStdio<Writable, Readable, null>;

class HelperProcess {
  readonly #pending = new Map<string, Pending>();
  /** Requests made while there is no process. */
  #waiting: Buffer[] = [];
  #child: Child | undefined;
  #restart: NodeJS.Timeout | undefined;
  /** How often in a row it has ended soon. */
  #failures = 0;
  #serial = 0;

  /** @param fields what the script's `start` takes after the id */
  launch(fields: readonly string[]): Launch {
    const id = String(this.#serial++);
    const pending = { pid: Promise.withResolvers<number | undefined>(), exited: Promise.withResolvers<number>() };
    pending.exited.promise.catch(() => {}); // Not everybody waits for it.
    this.#pending.set(id, pending);
    if (fields.some((field) => field.includes("\0"))) {
      this.#hear(`failed ${id} an argument has a NUL byte in it`);
    } else {
      const message = Buffer.from([id, ...fields].join("\0"));
      this.#send(Buffer.concat([Buffer.from(`${message.length}\n`), message]));
      this.#hold();
    }
    return { pid: pending.pid.promise, exited: pending.exited.promise };
  }

  #send(message: Buffer): void {
    if (this.#child) return void this.#child.stdin.write(message);
    this.#waiting.push(message);
    if (this.#failures === 0) this.#start();
    else this.#restart ??= setTimeout(() => this.#start(), backoffMs(this.#failures - 1, pauses));
  }

  #start(): void {
    this.#restart = undefined;
    const startedAtMs = performance.now();
    const child = spawn("perl", ["-e", helperScript, ...callNumbers], { stdio: ["pipe", "pipe", "ignore"] });
    this.#child = child;
    child.stdin.on("error", () => {}); // It ends then, see below.
    createInterface({ input: child.stdout }).on("line", (line) => this.#hear(line));
    child.once("error", (error) => this.#ended(child, error.message, startedAtMs));
    child.once("close", (code, signal) => this.#ended(child, `it ended with ${signal ?? code}`, startedAtMs));
    for (const message of this.#waiting.splice(0)) child.stdin.write(message);
    this.#hold();
  }

  #hear(line: string): void {
    const [event, id = "", ...rest] = line.split(" ");
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (event === "started") return pending.pid.resolve(Number(rest[0]));
    this.#forget(id, pending);
    if (event === "ended") pending.exited.resolve(exitCodeOf(Number(rest[0])));
    else pending.exited.reject(new SandgateError("internal_error", "the command could not be started", { cause: new Error(rest.join(" ")) }));
  }

  #forget(id: string, pending: Pending): void {
    this.#pending.delete(id);
    pending.pid.resolve(undefined);
    this.#hold();
  }

  #ended(child: Child, how: string, startedAtMs: number): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#failures = performance.now() - startedAtMs < soonMs ? this.#failures + 1 : 0;
    const cause = new Error(`the process that starts programs was lost: ${how}`);
    for (const [id, pending] of this.#pending) {
      this.#forget(id, pending);
      pending.exited.reject(new SandgateError("internal_error", "the command's process was lost", { cause }));
    }
  }

  /** Keeps the event loop alive while a program is awaited; the helper alone does not. */
  #hold(): void {
    if (!this.#child) return;
    const method = this.#pending.size > 0 ? "ref" : "unref";
    for (const each of [this.#child, this.#child.stdin as Socket, this.#child.stdout as Socket]) each[method]();
  }
}

/** The exit code of a status that wait(2) has returned; 128+n when signal n ended the process. */
export const exitCodeOf = (status: number): number => ((status & 0x7f) === 0 ? status >> 8 : 128 + (status & 0x7f));

/** Our descriptors for a program's standard streams, closed here once the program has them; /dev/null where there is none. */
export interface Descriptors {
  readonly stdin?: number;
  readonly stdout?: number;
  readonly stderr?: number;
}

/** Closes them here, where a program has them or will not. */
export function closeStreams({ stdin, stdout, stderr }: Descriptors): void {
  for (const fd of [stdin, stdout, stderr]) if (fd !== undefined) closeSync(fd);
}

export interface ProgramOptions extends Descriptors {
  readonly cwd?: string;
  /** Whether it runs with low priority, yielding to calls. */
  readonly isBulk?: boolean;
  /** Whether it and its children form a process group, which `kill` ends as a whole. */
  readonly hasGroup?: boolean;
  /** For a sandbox command: low priority, killed first when memory runs out, in the sandbox's control group if it has one of ours. */
  readonly sandbox?: { readonly group: { readonly entrances: readonly string[] } | undefined };
}

/** A started program. */
export interface Program extends Launch {
  /** Kills it; without effect on a program that has ended. */
  kill(): void;
}

const helper = new HelperProcess();

/** Starts a program. Its environment is the worker's, without settings and secrets. */
export function startProgram(command: readonly string[], options: ProgramOptions): Program {
  const { stdin, stdout, stderr, cwd = "", isBulk, hasGroup, sandbox } = options;
  const { pid, exited } = helper.launch([
    cwd,
    hasGroup ? "1" : "",
    sandbox || isBulk ? String(lowPriority) : "",
    sandbox ? String(oomScoreAdj) : "",
    sandbox?.group?.entrances.join("\n") ?? "",
    ...[stdin, stdout, stderr].map((fd) => fd?.toString() ?? ""),
    ...command,
  ]);
  void pid.then(() => closeStreams(options));
  let hasEnded = false;
  const end = (): void => {
    hasEnded = true;
  };
  exited.then(end, end);
  const kill = (): void => void pid.then((known) => known !== undefined && !hasEnded && killNow(hasGroup ? -known : known));
  return { pid, exited, kill };
}

/** Kills a process, or a process group if the number is negative. */
export function killNow(pid: number): void {
  attempt(() => process.kill(pid, "SIGKILL"));
}
