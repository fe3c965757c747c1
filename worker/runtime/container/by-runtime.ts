/** Starts programs in containers by the OCI runtime. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../host/host.ts";
import { childrenOf } from "../process/proc.ts";
import { type Descriptors, type Program, startProgram } from "../process/program.ts";
import { type ProcessSpec, type Started, sigkillExitCode } from "./command.ts";
import { type Container, runtimeOf } from "./container.ts";
import { startFailure } from "./failures.ts";
import { type CommandTerminal, processOf, reaped, takeFiles, watchStart } from "./start.ts";
import { inHostTerminal, killStrong, signalStrong, untilStarted } from "./strong.ts";

const startFile = /^x\d+\.(json|log|pid)$/;
const serverTimeoutMs = 10_000;

/** A command that was started, by one of the two ways. */
export interface Begun extends Pick<Started, "started" | "exited"> {
  /** The host's process id of its subreaper; undefined when it is gone, or not there yet. */
  readonly reaper: () => Promise<number | undefined>;
  /** Undefined where `reaper` is enough for that. */
  readonly strong?: Pick<Started, "kill"> & { signal(name: NodeJS.Signals): Promise<void> };
}

export class RuntimeStarter {
  readonly #host: Host;
  readonly #dir: string;
  #serial = 0;

  /** @param dir an in-memory directory of this worker, for files that live only during a start. */
  constructor(host: Host, dir: string) {
    this.#host = host;
    this.#dir = dir;
    // Leftovers of an earlier process would be taken for ours.
    for (const name of readdirSync(dir)) if (startFile.test(name)) rmSync(join(dir, name), { force: true });
  }

  /** Starts a command under a subreaper. */
  start(container: Container, spec: ProcessSpec, terminal: CommandTerminal | undefined, theirs: Descriptors): Begun {
    const isStrong = container.isolation === "strong";
    const hostTerminal = terminal?.isHosts ? terminal.path : undefined;
    const { group } = container;
    const killsBefore = group?.oomKills() ?? 0;
    const { program, base } = this.#run(container, processOf(container, spec, reaped(container, spec.args, terminal)), theirs, hostTerminal);
    const exited = program.exited.then((exitCode) => {
      const log = takeFiles(base, exitCode);
      // The kernel of a strong sandbox goes with its largest process, and the runtime loses the command.
      if (log && isStrong && (group?.oomKills() ?? 0) > killsBefore) return sigkillExitCode;
      if (log && exitCode !== 0) throw startFailure(log, spec, container);
      return exitCode;
    });
    // The runtime has one child, the subreaper in the container, as soon as it has forked.
    const reaper = async (): Promise<number | undefined> => firstChildOf(await program.pid);
    if (!isStrong)
      return {
        exited,
        started: firstOf(
          exited,
          program.pid.then((pid) => watchStart(pid, exited)),
        ),
        reaper,
      };
    const innerPid = untilStarted(`${base}.pid`, program.exited);
    const signal = async (name: NodeJS.Signals): Promise<void> =>
      signalStrong(container, { runtimePid: await program.pid, innerPid: await innerPid, hasTerminal: hostTerminal !== undefined }, name);
    return {
      exited,
      started: firstOf(
        exited,
        innerPid.then(() => {}),
      ),
      reaper,
      strong: { kill: () => killStrong(container, innerPid, exited), signal },
    };
  }

  /** Runs a program that goes on in the container by itself. @returns whether it could be started */
  async startServer(container: Container, path: string): Promise<boolean> {
    // The usual folder may have been removed.
    const process = processOf(container, { args: [], env: {}, workingDir: "/" }, [path]);
    const { program, base } = this.#run(container, process, {});
    const timer = setTimeout(() => program.kill(), serverTimeoutMs);
    try {
      return (await program.exited) === 0;
    } finally {
      clearTimeout(timer);
      takeFiles(base, 0);
    }
  }

  #run(container: Container, process: object, theirs: Descriptors, hostTerminal?: string): { program: Program; base: string } {
    const base = join(this.#dir, `x${this.#serial++}`);
    writeFileSync(`${base}.json`, JSON.stringify({ ...process, terminal: hostTerminal !== undefined }), { mode: 0o600 });
    const command = [
      ...(hostTerminal ? inHostTerminal(hostTerminal) : []),
      ...[runtimeOf(this.#host, container.isolation), `--log=${base}.log`, "--log-format=json", "exec"],
      ...(container.isolation === "strong" ? [`--internal-pid-file=${base}.pid`] : []),
      ...["--process", `${base}.json`, container.id],
    ];
    return { program: startProgram(command, { ...theirs, sandbox: container }), base };
  }
}

const firstOf = (exited: Promise<number>, running: Promise<void>): Promise<void> => Promise.race([exited.then(() => {}), running]);

const firstChildOf = (pid: number | undefined): number | undefined => (pid === undefined ? undefined : childrenOf(pid)[0]);
