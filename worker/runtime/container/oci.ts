/**
 * Runs commands in a container directly by the OCI runtime: `podman exec` takes over 60 ms, the runtime 5 ms. The worker runs
 * inside Podman's user namespace, so the runtime finds the containers that Podman started.
 */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { within } from "../../../shared/waiting.ts";
import type { Host } from "../host/host.ts";
import { openStreams, type PipeReader, writerOf } from "../process/pipes.ts";
import { childrenOf, killTree } from "../process/proc.ts";
import { type Descriptors, startProgram } from "../process/program.ts";
import { signalGroup } from "../process/signals.ts";
import type { CommandSpec, Interactive, InteractiveSpec, ProcessSpec, RunningCommand, Started } from "./command.ts";
import { type Container, findContainer, inspectContainer } from "./container.ts";
import { thawAbandoned } from "./freezer.ts";
import { streamsOf } from "./interactive.ts";
import { Standstills } from "./standstill.ts";
import { isReaper, processOf, reaped, startFailure, takeFiles, watchStart } from "./start.ts";

/** The longest single argument that Linux passes to a program, including its final NUL (MAX_ARG_STRLEN). */
const argumentBytesMax = 131_072;
const startFile = /^x\d+\.(json|log)$/;

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
  inspect(containerId: string): Promise<Container> {
    return inspectContainer(this.#host, containerId);
  }

  /** Starts a command, once the container is not frozen. Its output must be read, and `exited` awaited. */
  exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    return this.#unlessStill(container, () => {
      const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: spec.stdin === "pipe" });
      const readers = [stdout, stderr];
      const { program, ...command } = this.#start(container, spec, reaped(spec.args), theirs, readers);
      const close = (): void => readers.forEach((reader) => reader.close());
      return { ...command, stdout, stderr, stdin: stdinFd === undefined ? null : writerOf(stdinFd), close };
    });
  }

  /** Starts an interactive command, with or without a terminal. Its output must be read, and `exited` awaited. */
  interact(container: Container, spec: InteractiveSpec, onTaken: (bytes: number) => void): Promise<Interactive> {
    return this.#unlessStill(container, () => {
      const { argv, theirs, ...streams } = streamsOf(container, spec, onTaken);
      const readers = streams.outputs.map(({ reader }) => reader);
      const { program, ...command } = this.#start(container, spec, argv, theirs, readers);
      return { ...command, ...streams, signal: async (name) => signalGroup(await program.pid, name) };
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

  #start(container: Container, spec: ProcessSpec, argv: readonly string[], theirs: Descriptors, readers: readonly PipeReader[]) {
    const base = join(this.#dir, `x${this.#serial++}`);
    const oomKills = (): number => container.group?.oomKills() ?? 0;
    writeFileSync(`${base}.json`, JSON.stringify(processOf(container, spec, argv)), { mode: 0o600 });
    const exec = [this.#host.runtime, `--log=${base}.log`, "--log-format=json", "exec", "--process", `${base}.json`, container.id];
    const program = startProgram(exec, { ...theirs, sandbox: container });
    const killsBefore = oomKills();
    const exited = program.exited.then((exitCode) => {
      const log = takeFiles(base, exitCode);
      if (log && exitCode !== 0) throw startFailure(log, spec, container);
      return exitCode;
    });
    const started = Promise.race([exited.then(() => {}), program.pid.then((pid) => watchStart(pid, exited))]);
    exited.finally(() => readers.forEach((reader) => reader.writerExited())).catch(() => {});
    const kill = async (): Promise<void> => this.#kill(await program.pid, exited);
    return { program, exited, started, kill, ranOutOfMemory: () => oomKills() > killsBefore };
  }

  /** Thaws a container that an earlier process of this worker may have left frozen. */
  async thawAbandoned(containerId: string): Promise<void> {
    const container = await findContainer(this.#host.runtime, containerId);
    if (container) thawAbandoned(container);
  }

  /** Kills commands that an earlier process of this worker started and that nobody waits for any more. */
  async killOrphans(container: Container, members: readonly number[]): Promise<number> {
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
