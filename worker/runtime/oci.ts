/**
 * Commands in a running container, by the OCI runtime directly: `podman exec` takes over 60 ms, the runtime 5 ms.
 * The worker runs inside Podman's user namespace, so the runtime finds the containers that Podman started.
 */
import { closeSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { execa } from "execa";
import { SandgateError } from "../../shared/errors.ts";
import { type Container, findContainer, inspectContainer, notRunning } from "./container.ts";
import { thawAbandoned } from "./freezer.ts";
import type { Host } from "./host.ts";
import type { PipePool, PipeReader } from "./pipes.ts";
import { initPath } from "./podman.ts";
import { childrenOf, commandLineOf, killTree, pidNamespaceOf } from "./proc.ts";
import { type RuntimeProcess, Spawner } from "./spawner.ts";
import { Standstills } from "./standstill.ts";

/** The longest single argument that Linux passes to a program, its final NUL included (MAX_ARG_STRLEN). */
const argumentBytesMax = 131_072;
const sigkillExitCode = 137;
const startFile = /^x\d+\.(json|log)$/;

export interface CommandSpec {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir?: string | undefined;
  readonly stdin: "none" | "pipe";
}

/** A command that was started in a container. */
export interface RunningCommand {
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
  readonly stdin: Writable | null;
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
  async exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    const leave = await this.standstills.enter(container.id);
    try {
      const command = await this.#exec(container, spec);
      command.started.then(leave, leave);
      return command;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    const base = join(this.#dir, `x${this.#serial++}`);
    const [stdout, stderr] = await this.#pipes.takeTwo();
    writeFileSync(`${base}.json`, JSON.stringify(processOf(container, spec)), { mode: 0o600 });
    const { stdin, pid, exited: ended } = this.#start(base, container.id, spec.stdin, stdout.writeFd, stderr.writeFd);
    const exited = ended
      .finally(() => [stdout, stderr].forEach(({ writeFd }) => closeSync(writeFd)))
      .then((exitCode) => {
        const log = takeFiles(base, exitCode);
        if (log && exitCode !== 0) throw startFailure(log, spec, container);
        return exitCode;
      });
    exited.finally(() => [stdout.reader, stderr.reader].forEach((reader) => reader.writerExited())).catch(() => {});
    return {
      stdout: stdout.reader,
      stderr: stderr.reader,
      stdin,
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
    const orphans = members.filter((pid) => pid !== container.initPid && commandLineOf(pid)[0] === initPath);
    await Promise.all(orphans.map((pid) => killTree(pid)));
    return orphans.length;
  }

  #start(base: string, containerId: string, stdin: CommandSpec["stdin"], stdoutFd: number, stderrFd: number): RuntimeProcess & { stdin: Writable | null } {
    if (stdin === "none") return { ...this.#spawner.start(base, containerId, stdoutFd, stderrFd), stdin: null };
    // execa's types know descriptors only as literals.
    const stdio = ["pipe", stdoutFd, stderrFd] as unknown as ["pipe", 1, 2];
    const child = execa(this.#host.runtime, [`--log=${base}.log`, "--log-format=json", "exec", "--process", `${base}.json`, containerId], {
      reject: false,
      buffer: false,
      stdio,
    });
    const exited = child.then((result) => {
      if (result.exitCode === undefined && !result.signal) throw new SandgateError("internal_error", "the command could not be started", { cause: result });
      return result.exitCode ?? sigkillExitCode;
    });
    return { pid: Promise.resolve(child.pid), exited, stdin: child.stdin };
  }

  async #kill(runtimePid: number | undefined, exited: Promise<number>): Promise<void> {
    if (runtimePid === undefined) return;
    // The runtime has one child, the subreaper in the container, as soon as it has forked.
    for (let ended = false; !ended; ) {
      await Promise.all(childrenOf(runtimePid).map((pid) => this.standstills.endTree(pid)));
      ended = await Promise.race([
        exited.then(
          () => true,
          () => true,
        ),
        new Promise<false>((resolve) => setTimeout(resolve, 20, false)),
      ]);
    }
  }
}

function processOf(container: Container, spec: CommandSpec): object {
  const env = new Map((container.process.env ?? []).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
  for (const [name, value] of Object.entries(spec.env)) env.set(name, value);
  return {
    ...container.process,
    terminal: false,
    args: [initPath, "--", ...spec.args],
    env: [...env].map(([name, value]) => `${name}=${value}`),
    cwd: spec.workingDir ?? container.process.cwd,
  };
}

/** `/bin/sh -c command`; a command too long for one argument is put together again inside the shell. */
export function shellArguments(command: string): string[] {
  if (Buffer.byteLength(command) < argumentBytesMax) return ["/bin/sh", "-c", command];
  const characters = [...command];
  const middle = characters.length >> 1;
  // The parts are put in before `shift` runs, which leaves the command without arguments, as it is otherwise.
  return ["/bin/sh", "-c", 'eval "shift 2;$1$2"', "/bin/sh", characters.slice(0, middle).join(""), characters.slice(middle).join("")];
}

/**
 * Resolves once the runtime's child has become the subreaper, which means that the working directory,
 * user and limits were accepted. The runtime itself says nothing until the command has ended.
 */
async function watchStart(runtimePid: number | undefined, exited: Promise<number>): Promise<void> {
  let over = runtimePid === undefined;
  const end = (): void => {
    over = true;
  };
  exited.then(end, end);
  for (let waitMs = 3; runtimePid !== undefined && !over; waitMs = Math.min(waitMs * 2, 50)) {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (childrenOf(runtimePid).some((pid) => commandLineOf(pid)[0] === initPath)) return;
  }
}

/** Removes the files of a start and returns what the runtime complained of. */
function takeFiles(base: string, exitCode: number): string {
  rmSync(`${base}.json`, { force: true });
  try {
    return exitCode === 0 ? "" : readFileSync(`${base}.log`, "utf8");
  } catch {
    return ""; // The runtime was ended before it made one.
  } finally {
    // The runtime makes it also when it has nothing to say.
    rmSync(`${base}.log`, { force: true });
  }
}

function startFailure(log: string, spec: CommandSpec, container: Container): SandgateError {
  const cause = new Error(log.trim());
  // The runtime then misses one thing or another of the container's first process.
  if (pidNamespaceOf(container.initPid) !== container.pidNamespace) return notRunning(log);
  if (/chdir|cwd/i.test(log)) return new SandgateError("unprocessable", `working_dir does not exist or is not a directory: ${spec.workingDir}`, { cause });
  if (/not running|does not exist|no such process|container.*stopped/i.test(log)) return notRunning(log);
  if (/executable file|no such file or directory/i.test(log)) return new SandgateError("unprocessable", `the image has no ${spec.args[0]}`, { cause });
  return new SandgateError("internal_error", "the command could not be started", { cause });
}
