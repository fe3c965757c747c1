/** Runs CRIU, and stops it at one stage until it is told to go on. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { run } from "../../base/run.ts";
import { searchPath } from "../../base/search-path.mjs";
import { Refusal } from "../refusal.ts";

/** Of `CRTOOLS_SCRIPT_ACTION` in criu(8): all is dumped and stands still; all is restored and nothing has run. */
export type Stage = "post-dump" | "post-restore";

/**
 * CRIU's action script: says by one FIFO that the stage is reached, and goes on when told so by another. When the helper is gone, it
 * fails, and CRIU with it: then a source runs on as if nothing had been, and a copy ends before it has run. CRIU leaves it no
 * descriptors, and without waiting FIFOs are opened so that it hears of the end of a helper at any time.
 */
const script = (stage: Stage, dir: string): string => `#!/bin/sh
# Started for every stage, so Perl is loaded for none but this one.
[ "$CRTOOLS_SCRIPT_ACTION" = "${stage}" ] || exit 0
exec perl -x "$0"
#!perl
use Fcntl;
sysopen(my $reached, "${dir}/reached", O_WRONLY | O_NONBLOCK) or exit 1;
sysopen(my $on, "${dir}/on", O_RDONLY | O_NONBLOCK) or exit 1;
syswrite($reached, ($ENV{CRTOOLS_INIT_PID} // 0) . "\n") or exit 1;
my $waiting = "";
vec($waiting, fileno($on), 1) = 1;
select($waiting, undef, undef, undef);
exit(sysread($on, my $word, 2) == 2 ? 0 : 1);
`;

/**
 * CRIU follows processes by their system calls, not with hardware breakpoints, which take as long: where a virtual machine has none,
 * CRIU before 4.2 sets them all the same and waits for ever, and with it the processes that stand still. The number is that of
 * `FI_NO_BREAKPOINTS` in CRIU.
 */
const env = { PATH: searchPath, LC_ALL: "C", CRIU_FAULT: "130" };
const onlyRoot = 0o700;
const logFile = "criu.log";
/** What is said before there is a log. */
const errorsFile = "errors.txt";

/** Options of every run. The network is made anew and configured from outside, control groups are the worker's business. */
const always = [
  "--no-default-config",
  "--manage-cgroups=ignore",
  "--empty-ns",
  "net",
  "--network-lock",
  "skip",
  "--tcp-close",
  "--ext-unix-sk",
  "--file-locks",
];

/** Those that CRIU writes are read with other ids when it restores. Nobody passes the folder above. */
const withUsualFiles = ["sh", "-c", 'umask 022; exec "$@"', "sh"];

/** A run of CRIU for one image. */
export class Criu {
  readonly #dir: string;
  readonly #reached: Socket;
  readonly #onFd: number;
  readonly #ended: Promise<boolean>;

  private constructor(dir: string, child: ChildProcess) {
    this.#dir = dir;
    // For both directions, so that it is not at its end before the other side is there.
    this.#reached = new Socket({ fd: openSync(join(dir, "reached"), constants.O_RDWR | constants.O_NONBLOCK), readable: true, writable: false });
    this.#onFd = openSync(join(dir, "on"), "r+");
    this.#ended = once(child, "exit").then(
      ([code]) => code === 0,
      () => false,
    );
    void this.#ended.then(() => this.#close());
  }

  /**
   * @param dir the folder of the image
   * @param before what starts CRIU; nothing to start it as it is
   */
  static async start(dir: string, stage: Stage, options: readonly string[], before: readonly string[] = []): Promise<Criu> {
    const action = join(dir, stage);
    await writeFile(action, script(stage, dir), { mode: onlyRoot });
    await run(["mkfifo", "--mode=600", join(dir, "reached"), join(dir, "on")], { env, cwd: "/" });
    const [verb = "", ...more] = options;
    const command = [
      ...withUsualFiles,
      ...before,
      "criu",
      verb,
      "--images-dir",
      dir,
      "--work-dir",
      dir,
      "--log-file",
      logFile,
      "-v2",
      "--action-script",
      action,
      ...always,
      ...more,
    ];
    const [file = "", ...args] = command;
    // In a session of its own: it must never be killed, since it has changed the registers of what it dumps.
    const errors = openSync(join(dir, errorsFile), "w", 0o600);
    const child = spawn(file, args, { cwd: "/", env, stdio: ["ignore", "ignore", errors], detached: true });
    closeSync(errors);
    return new Criu(dir, child);
  }

  /** Resolves when the stage is reached, with the process id that CRIU tells. @throws {Refusal} when it is not */
  async reached(): Promise<number> {
    const said = once(this.#reached, "data").then(([bytes]) => String(bytes));
    said.catch(() => {});
    const first = await Promise.race([said, this.#ended.then(() => undefined)]);
    if (first === undefined) throw this.#failure();
    return Number(first.trim());
  }

  /** Goes on after the stage. Resolves when all is done. @throws {Refusal} */
  async goOn(): Promise<void> {
    writeSync(this.#onFd, "go");
    if (!(await this.#ended)) throw this.#failure();
  }

  /** Ends it without success. Resolves when it has cleaned up. */
  async giveUp(): Promise<void> {
    this.#close();
    await this.#ended;
  }

  #close(): void {
    if (this.#reached.destroyed) return;
    this.#reached.destroy();
    closeSync(this.#onFd);
  }

  #failure(): Refusal {
    const [log, said] = [logFile, errorsFile].map((name) => attempt(() => readFileSync(join(this.#dir, name), "utf8")) ?? "") as [string, string];
    for (const line of [...said.split("\n"), ...errorsIn(log)]) if (line) process.stderr.write(`criu: ${line}\n`);
    return new Refusal("refused", reasonIn(log) ?? (said.trim() || "CRIU failed and does not say why"));
  }
}

const errorsIn = (log: string): string[] => log.split("\n").flatMap((line) => /Error \([^)]*\): (.*)$/.exec(line)?.[1] ?? []);

/** Errors after which CRIU goes on. */
const harmless = /^rlimit: /;

/** Why CRIU failed, from its log: the first error is the cause of those after it. */
export function reasonIn(log: string): string | undefined {
  const first = errorsIn(log).find((line) => !harmless.test(line));
  return first !== undefined && /^tty: /.test(first) ? `a terminal is open that cannot be kept (${first})` : first;
}
