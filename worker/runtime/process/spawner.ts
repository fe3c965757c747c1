/**
 * Starts the OCI runtime for commands without Node's own spawn, which forks the whole worker: that blocks every
 * other call for milliseconds, the longer the more memory the worker has. A small shell that is started once forks
 * in a fraction of one.
 */
import { createInterface } from "node:readline";
import { execa } from "execa";
import { SandgateError } from "../../../shared/errors.ts";
import type { Container } from "../container/container.ts";
import { oomScoreAdj, withLowPriority } from "../container/isolation.ts";

/** Gives a shell the oom_score_adj of sandboxes, which everything that it starts inherits. */
export const endedFirst = `echo ${oomScoreAdj} > /proc/self/oom_score_adj`;

/**
 * Moves a shell to the CPU group in $group, if there is one, which everything that it starts inherits as well. By way of `tasks`:
 * a single thread that moves itself waits for nobody, while `cgroup.procs` has the kernel wait some 15 ms for all CPUs.
 */
export const joinGroup = '[ "$group" = - ] || echo 0 > "$group/tasks"';

/** What `joinGroup` is told of a container. */
export const groupOf = ({ cpuGroup }: Pick<Container, "cpuGroup">): string => cpuGroup ?? "-";

/**
 * $0 is the runtime. Each line of input is a command: its id, the base of its files, its container and that one's CPU group,
 * and the files of its standard streams. `jobs` collects the shells of earlier commands that have ended.
 */
const program = `${endedFirst}
while read -r id base container group in out err; do
  jobs > /dev/null
  {
    ${joinGroup}
    "$0" --log="$base.log" --log-format=json exec --process "$base.json" "$container" \\
      < "$in" > "$out" 2> "$err" &
    echo "started $id $!"
    wait $!
    echo "ended $id $?"
  } &
done
`;

/** A runtime that was started and ends with the command that it runs. */
export interface RuntimeProcess {
  /** Its process id; undefined when it ended before that was known. */
  readonly pid: Promise<number | undefined>;
  /** Its exit code, 128+n when signal n ended it. Rejects when it could not be started. */
  readonly exited: Promise<number>;
}

/** Descriptors of ours that a command gets as its standard streams; /dev/null where there is none. */
export interface Descriptors {
  readonly stdin?: number;
  readonly stdout?: number;
  readonly stderr?: number;
}

interface Pending {
  readonly pid: PromiseWithResolvers<number | undefined>;
  readonly exited: PromiseWithResolvers<number>;
}

function launch(runtime: string) {
  return execa(withLowPriority[0], [...withLowPriority.slice(1), "/bin/sh", "-c", program, runtime], {
    stdio: ["pipe", "pipe", "ignore"],
    buffer: false,
    reject: false,
  });
}
type Shell = ReturnType<typeof launch>;

export class Spawner {
  readonly #runtime: string;
  readonly #pending = new Map<string, Pending>();
  #shell: Shell | undefined;
  #serial = 0;

  constructor(runtime: string) {
    this.#runtime = runtime;
  }

  /**
   * Runs `exec` with the process file `<base>.json`. The descriptors must stay open until it has ended.
   *
   * @param base a path without spaces; errors of the runtime go to `<base>.log`.
   */
  start(base: string, container: Pick<Container, "id" | "cpuGroup">, { stdin, stdout, stderr }: Descriptors): RuntimeProcess {
    const id = String(this.#serial++);
    const pending = { pid: Promise.withResolvers<number | undefined>(), exited: Promise.withResolvers<number>() };
    this.#pending.set(id, pending);
    this.#shell ??= this.#startShell();
    this.#shell.stdin.write(`${id} ${base} ${container.id} ${groupOf(container)} ${fileOf(stdin)} ${fileOf(stdout)} ${fileOf(stderr)}\n`);
    return { pid: pending.pid.promise, exited: pending.exited.promise };
  }

  #startShell(): Shell {
    const shell = launch(this.#runtime);
    shell.stdin.on("error", () => {});
    createInterface({ input: shell.stdout }).on("line", (line) => this.#hear(line));
    void shell.then(() => this.#shellEnded());
    return shell;
  }

  #hear(line: string): void {
    const [event, id = "", value] = line.split(" ");
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (event === "started") return pending.pid.resolve(Number(value));
    this.#pending.delete(id);
    pending.pid.resolve(undefined);
    pending.exited.resolve(Number(value));
  }

  /** The next command starts another shell; what ran under this one has lost its way to tell how it ended. */
  #shellEnded(): void {
    this.#shell = undefined;
    for (const [id, pending] of this.#pending) {
      this.#pending.delete(id);
      pending.pid.resolve(undefined);
      pending.exited.reject(new SandgateError("internal_error", "the command's process was lost"));
    }
  }
}

const fileOf = (fd: number | undefined): string => (fd === undefined ? "/dev/null" : `/proc/${process.pid}/fd/${fd}`);
