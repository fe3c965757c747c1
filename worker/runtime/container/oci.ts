/**
 * Commands in a running container, by the OCI runtime directly: `podman exec` takes over 60 ms, the runtime 5 ms.
 * The worker runs inside Podman's user namespace, so the runtime finds the containers that Podman started.
 */
import { closeSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { execa } from "execa";
import { SandgateError } from "../../../shared/errors.ts";
import { within } from "../../../shared/waiting.ts";
import type { Host } from "../host.ts";
import { type Interactive, type InteractiveSpec, streamsOf } from "../process/interactive.ts";
import type { PipePool, PipeReader } from "../process/pipes.ts";
import { childrenOf, killTree } from "../process/proc.ts";
import { signalGroup } from "../process/signals.ts";
import { type Descriptors, endedFirst, groupOf, joinGroup, type RuntimeProcess, Spawner } from "../process/spawner.ts";
import { Terminals } from "../process/terminals.ts";
import { type Container, findContainer, inspectContainer } from "./container.ts";
import { thawAbandoned } from "./freezer.ts";
import { withLowPriority } from "./isolation.ts";
import { Standstills } from "./standstill.ts";
import { isReaper, type ProcessSpec, processOf, reaped, startFailure, takeFiles, watchStart } from "./start.ts";

/** The longest single argument that Linux passes to a program, its final NUL included (MAX_ARG_STRLEN). */
const argumentBytesMax = 131_072;
const sigkillExitCode = 137;
const startFile = /^x\d+\.(json|log)$/;

export interface CommandSpec extends ProcessSpec {
  readonly stdin: "none" | "pipe";
}

/** A command that was started in a container. */
export interface RunningCommand extends Started {
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
  readonly stdin: Writable | null;
}

export interface Started {
  /** Resolves when the command runs; rejects when it could not be started. */
  readonly started: Promise<void>;
  /** The exit code: the command's own, or 128+n when signal n ended it. Rejects like `started`. */
  readonly exited: Promise<number>;
  /** Ends the command with everything it started, daemonised or not. Resolves when all are gone. */
  kill(): Promise<void>;
}

export class OciRuntime {
  readonly standstills = new Standstills();
  readonly #host: Host;
  readonly #pipes: PipePool;
  readonly #dir: string;
  readonly #spawner: Spawner;
  readonly #terminals = new Terminals();
  #serial = 0;

  /** @param dir a directory of this worker in memory, for files that live as long as a start takes. */
  constructor(host: Host, pipes: PipePool, dir: string) {
    this.#host = host;
    this.#pipes = pipes;
    this.#dir = dir;
    this.#spawner = new Spawner(host.runtime);
    // What an earlier process left would be taken for ours.
    for (const name of readdirSync(dir)) if (startFile.test(name)) rmSync(join(dir, name), { force: true });
  }

  /** Looks a running container up. @throws {ContainerNotRunning} */
  inspect(containerId: string): Promise<Container> {
    return inspectContainer(this.#host, containerId);
  }

  /** Starts a command, as soon as the container does not stand still. Its output must be read, and `exited` awaited. */
  exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    return this.#unlessStill(container, () => this.#exec(container, spec));
  }

  /** Starts a command that is written to while it runs, with or without a terminal. Its output must be read, and `exited` awaited. */
  interact(container: Container, spec: InteractiveSpec, onTaken: (bytes: number) => void): Promise<Interactive> {
    return this.#unlessStill(container, () => this.#interact(container, spec, onTaken));
  }

  async #unlessStill<T extends Started>(container: Container, start: () => Promise<T>): Promise<T> {
    const leave = await this.standstills.enter(container.id);
    try {
      const command = await start();
      command.started.then(leave, leave);
      return command;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    const [stdout, stderr] = await this.#pipes.takeTwo();
    const base = this.#describe(container, spec, reaped(spec.args));
    const { stdin, ...process } = this.#start(base, container, spec.stdin, { stdout: stdout.writeFd, stderr: stderr.writeFd });
    const command = this.#follow(container, spec, base, process, () => [stdout, stderr].forEach(({ writeFd }) => closeSync(writeFd)));
    command.exited.finally(() => [stdout.reader, stderr.reader].forEach((reader) => reader.writerExited())).catch(() => {});
    return { ...command, stdout: stdout.reader, stderr: stderr.reader, stdin };
  }

  async #interact(container: Container, spec: InteractiveSpec, onTaken: (bytes: number) => void): Promise<Interactive> {
    const streams = await streamsOf({ container, spec, pipes: this.#pipes, terminals: this.#terminals, onTaken });
    const base = this.#describe(container, spec, streams.argv);
    const process = this.#spawner.start(base, container, streams.descriptors);
    const command = this.#follow(container, spec, base, process, streams.release);
    command.exited.finally(() => streams.outputs.forEach(({ reader }) => reader.writerExited())).catch(() => {});
    const { outputs, input, resize, close } = streams;
    return { ...command, outputs, input, resize, close, signal: async (name) => signalGroup(await process.pid, name) };
  }

  /** Writes the runtime's file of a command. @returns the base of the names of its files. */
  #describe(container: Container, spec: ProcessSpec, argv: readonly string[]): string {
    const base = join(this.#dir, `x${this.#serial++}`);
    writeFileSync(`${base}.json`, JSON.stringify(processOf(container, spec, argv)), { mode: 0o600 });
    return base;
  }

  /** @param release closes our copies of the command's own descriptors. */
  #follow(container: Container, spec: ProcessSpec, base: string, { pid, exited: ended }: RuntimeProcess, release: () => void): Started {
    const exited = ended.finally(release).then((exitCode) => {
      const log = takeFiles(base, exitCode);
      if (log && exitCode !== 0) throw startFailure(log, spec, container);
      return exitCode;
    });
    return {
      exited,
      started: Promise.race([exited.then(() => {}), pid.then((known) => watchStart(known, exited))]),
      kill: async () => this.#kill(await pid, exited),
    };
  }

  /** Sets a container going that an earlier process of this worker may have left standing still. */
  async thawAbandoned(containerId: string): Promise<void> {
    const container = await findContainer(this.#host.runtime, containerId);
    if (container) thawAbandoned(container);
  }

  /** Ends commands that an earlier process of this worker started and that nobody waits for any more. */
  async killOrphans(container: Container, members: readonly number[]): Promise<number> {
    const orphans = members.filter((pid) => pid !== container.initPid && isReaper(pid));
    await Promise.all(orphans.map((pid) => killTree(pid)));
    return orphans.length;
  }

  #start(base: string, container: Container, stdin: CommandSpec["stdin"], outputs: Descriptors): RuntimeProcess & { stdin: Writable | null } {
    if (stdin === "none") return { ...this.#spawner.start(base, container, outputs), stdin: null };
    // execa's types know descriptors only as literals.
    const stdio = ["pipe", outputs.stdout, outputs.stderr] as unknown as ["pipe", 1, 2];
    const command = [this.#host.runtime, `--log=${base}.log`, "--log-format=json", "exec", "--process", `${base}.json`, container.id];
    const shell = ["/bin/sh", "-c", `${endedFirst}; group=$0; ${joinGroup}; exec "$@"`, groupOf(container), ...command];
    const child = execa(withLowPriority[0], [...withLowPriority.slice(1), ...shell], { reject: false, buffer: false, stdio });
    const exited = child.then((result) => {
      if (result.exitCode === undefined && !result.signal) throw new SandgateError("internal_error", "the command could not be started", { cause: result });
      return result.exitCode ?? sigkillExitCode;
    });
    return { pid: Promise.resolve(child.pid), exited, stdin: child.stdin };
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

/** `/bin/sh -c -- command`, so that no command is read as an option; one too long for one argument is put together again inside the shell. */
export function shellArguments(command: string): string[] {
  if (Buffer.byteLength(command) < argumentBytesMax) return ["/bin/sh", "-c", "--", command];
  const characters = [...command];
  const middle = characters.length >> 1;
  // The parts are put in before `shift` runs, which leaves the command without arguments, as it is otherwise.
  return ["/bin/sh", "-c", 'eval "shift 2;$1$2"', "/bin/sh", characters.slice(0, middle).join(""), characters.slice(middle).join("")];
}
