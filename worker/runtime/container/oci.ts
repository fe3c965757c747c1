/**
 * Runs commands in a container directly by the OCI runtime: `podman exec` takes over 60 ms, the runtime 5 ms. The worker runs
 * inside Podman's user namespace, so the runtime finds the containers that Podman started.
 */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import { within } from "../../../shared/waiting.ts";
import type { Host } from "../host/host.ts";
import { firstIdOf } from "../ids/ranges.ts";
import { openStreams, type PipeReader, writerOf } from "../process/pipes.ts";
import { childrenOf, killTree } from "../process/proc.ts";
import { type Descriptors, startProgram } from "../process/program.ts";
import { signalGroup } from "../process/signals.ts";
import { type CommandSpec, type Interactive, type InteractiveSpec, type ProcessSpec, type RunningCommand, type Started, sigkillExitCode } from "./command.ts";
import { type Container, endUnreachable, findContainer, inspectContainer, runtimeOf } from "./container.ts";
import { thawAbandoned } from "./freezer.ts";
import { streamsOf } from "./interactive.ts";
import { Standstills } from "./standstill.ts";
import { type CommandLine, isReaper, processOf, reaped, startFailure, takeFiles, watchStart } from "./start.ts";
import { inHostTerminal, killCommands, killStrong, signalStrong, untilStarted } from "./strong.ts";

/** The longest single argument that Linux passes to a program, including its final NUL (MAX_ARG_STRLEN). */
const argumentBytesMax = 131_072;
const startFile = /^x\d+\.(json|log|pid)$/;

export class OciRuntime {
  readonly standstills = new Standstills();
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

  /** Inspects a running container. @throws {ContainerNotRunning} */
  inspect(containerId: string, isolation: Isolation): Promise<Container> {
    return inspectContainer(this.#host, containerId, isolation);
  }

  /** Starts a command, once the container is not frozen. Its output must be read, and `exited` awaited. */
  exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    return this.#unlessStill(container, () => {
      const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: spec.stdin === "pipe" });
      const readers = [stdout, stderr];
      const { program, innerPid, ...command } = this.#start(container, spec, { argv: reaped(spec.args) }, theirs, readers);
      const close = (): void => readers.forEach((reader) => reader.close());
      return { ...command, stdout, stderr, stdin: stdinFd === undefined ? null : writerOf(stdinFd), close };
    });
  }

  /** Starts an interactive command, with or without a terminal. Its output must be read, and `exited` awaited. */
  interact(container: Container, spec: InteractiveSpec, onTaken: (bytes: number) => void): Promise<Interactive> {
    return this.#unlessStill(container, () => {
      const { argv, hostTerminal, theirs, ...streams } = streamsOf(container, spec, onTaken);
      const readers = streams.outputs.map(({ reader }) => reader);
      const { program, innerPid, ...command } = this.#start(container, spec, { argv, hostTerminal }, theirs, readers);
      const signal = async (name: NodeJS.Signals): Promise<void> =>
        innerPid
          ? signalStrong(container, { runtimePid: await program.pid, innerPid: await innerPid, hasTerminal: hostTerminal !== undefined }, name)
          : signalGroup(await program.pid, name);
      return { ...command, ...streams, signal };
    });
  }

  async #unlessStill<T extends Started>(container: Container, start: () => T): Promise<T> {
    const leave = await this.standstills.enter(container.id);
    try {
      const command = start();
      command.started.then(leave, leave);
      return command;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Returns also the command's process in a strong sandbox, undefined in others. */
  #start(container: Container, spec: ProcessSpec, line: CommandLine, theirs: Descriptors, readers: readonly PipeReader[]) {
    const isStrong = container.isolation === "strong";
    const base = join(this.#dir, `x${this.#serial++}`);
    const oomKills = (): number => container.group?.oomKills() ?? 0;
    writeFileSync(`${base}.json`, JSON.stringify(processOf(container, spec, line)), { mode: 0o600 });
    const exec = [
      ...(line.hostTerminal ? inHostTerminal(line.hostTerminal) : []),
      ...[runtimeOf(this.#host, container.isolation), `--log=${base}.log`, "--log-format=json", "exec"],
      ...(isStrong ? [`--internal-pid-file=${base}.pid`] : []),
      ...["--process", `${base}.json`, container.id],
    ];
    const program = startProgram(exec, { ...theirs, sandbox: container });
    const killsBefore = oomKills();
    const exited = program.exited.then((exitCode) => {
      const log = takeFiles(base, exitCode);
      // The kernel of a strong sandbox goes with its largest process, and the runtime loses the command.
      if (log && isStrong && oomKills() > killsBefore) return sigkillExitCode;
      if (log && exitCode !== 0) throw startFailure(log, spec, container);
      return exitCode;
    });
    const innerPid = isStrong ? untilStarted(`${base}.pid`, program.exited) : undefined;
    const running = innerPid ? innerPid.then(() => {}) : program.pid.then((pid) => watchStart(pid, exited));
    const started = Promise.race([exited.then(() => {}), running]);
    exited.finally(() => readers.forEach((reader) => reader.writerExited())).catch(() => {});
    const kill = innerPid ? () => killStrong(container, innerPid, exited) : async () => this.#kill(await program.pid, exited);
    return { program, innerPid, exited, started, kill, ranOutOfMemory: () => oomKills() > killsBefore };
  }

  /** Thaws a container that an earlier process of this worker may have left frozen. */
  async thawAbandoned(containerId: string, isolation: Isolation): Promise<void> {
    const container = await findContainer(runtimeOf(this.#host, isolation), containerId);
    if (container) thawAbandoned(container);
  }

  /** Ends what is left of a container with ids of its own, if it is out of reach. @returns whether it was */
  endUnreachable(containerId: string, range: number): Promise<boolean> {
    return endUnreachable(this.#host, containerId, firstIdOf(range));
  }

  /** Kills commands that an earlier process of this worker started and that nobody waits for any more. */
  async killOrphans(container: Container, members: readonly number[]): Promise<number> {
    if (container.isolation === "strong") return killCommands(container);
    const orphans = members.filter((pid) => pid !== container.initPid && isReaper(pid));
    await Promise.all(orphans.map((pid) => killTree(pid)));
    return orphans.length;
  }

  async #kill(runtimePid: number | undefined, exited: Promise<number>): Promise<void> {
    if (runtimePid === undefined) return;
    // The runtime has one child, the subreaper in the container, as soon as it has forked.
    const ended = exited.then(
      () => true,
      () => true,
    );
    do await Promise.all(childrenOf(runtimePid).map((pid) => this.standstills.endTree(pid)));
    while (!(await within(ended, 20)));
  }
}

/** `/bin/sh -c -- command`, so that no command is read as an option. A command too long for one argument is joined inside the shell. */
export function shellArguments(command: string): string[] {
  if (Buffer.byteLength(command) < argumentBytesMax) return ["/bin/sh", "-c", "--", command];
  const characters = [...command];
  const middle = characters.length >> 1;
  // The parts are substituted before `shift` runs, which leaves the command without arguments, as usual.
  return ["/bin/sh", "-c", 'eval "shift 2;$1$2"', "/bin/sh", characters.slice(0, middle).join(""), characters.slice(middle).join("")];
}
