/**
 * Runs commands in containers. `podman exec` takes over 60 ms; the exec server in a sandbox starts a command in a few, and the OCI
 * runtime, called directly, takes over where there is none. The worker runs inside Podman's user namespace, so the runtime finds
 * the containers that Podman started.
 */
import { SandgateError } from "../../../shared/errors.ts";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import { within } from "../../../shared/waiting.ts";
import { type SmallFile, sendFile, writeSmall } from "../exec-server/files.ts";
import type { Kept } from "../exec-server/keeper.ts";
import { ownTerminal, words } from "../exec-server/message.ts";
import { isIdleServer } from "../exec-server/server.ts";
import { ExecServers, fitsServer, NotUnderstood } from "../exec-server/servers.ts";
import type { Host } from "../host/host.ts";
import { firstIdOf } from "../ids/ranges.ts";
import { openStreams, type PipeReader, writerOf } from "../process/pipes.ts";
import { killTree } from "../process/proc.ts";
import { closeStreams, type Descriptors } from "../process/program.ts";
import { signalGroup } from "../process/signals.ts";
import { type Begun, RuntimeStarter } from "./by-runtime.ts";
import type { CommandSpec, FileCommand, InsideTerminal, Interactive, InteractiveSpec, Output, ProcessSpec, RunningCommand, Size, Started } from "./command.ts";
import { type Container, endUnreachable, findContainer, type Inspected, inspectContainer, isCopy, notRunning, runtimeOf } from "./container.ts";
import type { Copies } from "./copies.ts";
import { execServerPath } from "./first-process.ts";
import { thawAbandoned } from "./freezer.ts";
import { streamsOf, toKeeper } from "./interactive.ts";
import { Standstills } from "./standstill.ts";
import { type CommandTerminal, isReaper } from "./start.ts";
import { killCommands } from "./strong.ts";

/** The longest single argument that Linux passes to a program, including its final NUL (MAX_ARG_STRLEN). */
const argumentBytesMax = 131_072;
const killPauseMs = 20;
/** How long a keeper may take to hold a terminal still. */
const holdMs = 2_000;

export class OciRuntime {
  readonly standstills = new Standstills();
  readonly #host: Host;
  readonly #runtime: RuntimeStarter;
  readonly #servers: ExecServers;
  readonly #copies: Copies;

  /**
   * @param dir an in-memory directory of this worker, for files that live only during a start.
   * @param copies which of the containers have processes that continue from an image
   */
  constructor(host: Host, dir: string, copies: Copies) {
    this.#host = host;
    this.#copies = copies;
    this.#runtime = new RuntimeStarter(host, dir);
    this.#servers = new ExecServers((container) => this.#runtime.startServer(container, execServerPath));
  }

  /** Inspects a running container of a sandbox that asked for this. @throws {ContainerNotRunning} */
  inspect(containerId: string, known: Inspected): Promise<Container> {
    return inspectContainer(this.#host, containerId, known, this.#copies);
  }

  /** Does ahead what the first command of a container would wait for. */
  prepare(container: Container): Promise<void> {
    return this.#servers.prepare(container);
  }

  /** Has the commands of a container that was started without files be in the groups of its user, which it knows only now. */
  joinGroups(container: Container): Promise<void> {
    return this.#servers.joinGroups(container);
  }

  /** Goes on with what an earlier process of this worker has left in a container. */
  resume(container: Container): Promise<void> {
    return this.#servers.resume(container);
  }

  /**
   * Runs an action while no command is being started in a container and its server has no connection to this worker, so that nothing
   * in there leads out of it. Commands that run go on.
   */
  async apart<T>(container: Container, action: () => Promise<T>): Promise<T> {
    const open = await this.standstills.close(container.id);
    try {
      await this.#servers.release(container);
      return await action();
    } finally {
      open();
      void this.prepare(container);
    }
  }

  /**
   * As `apart`, but nothing runs in the container afterwards until `standstills.release`.
   *
   * @param action is given what has everything stand still that is about to go on
   */
  async holdApart<T>(container: Container, action: (stand: () => void) => Promise<T>): Promise<T> {
    return this.standstills.hold(container, async (stand) => {
      await this.#servers.release(container);
      return action(stand);
    });
  }

  /** Lets a container that was held go on. */
  goOn(container: Container): void {
    this.standstills.release(container.id);
    void this.prepare(container);
  }

  /** The host's process id of the server that starts the container's commands; undefined when it has none. */
  serverIn(container: Container): number | undefined {
    return this.#servers.pidIn(container);
  }

  /** Starts a command, once the container is not frozen. Its output must be read, and `exited` awaited. */
  exec(container: Container, spec: CommandSpec): Promise<RunningCommand> {
    return this.#unlessStill(container, async () => {
      const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: spec.stdin === "pipe", owner: container });
      const readers = [stdout, stderr];
      const { signal, ...command } = await this.#start(container, spec, { terminal: undefined, theirs, readers });
      const close = (): void => readers.forEach((reader) => reader.close());
      return { ...command, stdout, stderr, stdin: stdinFd === undefined ? null : writerOf(stdinFd), close };
    });
  }

  /** Has the exec server of a container send a file to `stdout`, see `sendFile`. */
  sendFile(container: Container, path: string): Promise<FileCommand | undefined> {
    return this.#unlessStill(container, async () => {
      const ranOutOfMemory = outOfMemoryWatch(container);
      const sent = await sendFile(this.#servers, container, path);
      if (!sent) return undefined;
      const { kept, output } = sent;
      const begun = { ...kept, reaper: async () => this.#servers.keeperOf(container, kept.pid) };
      return { ...this.#controlled(begun, [{ reader: output }]), ranOutOfMemory, stdout: output, close: () => output.close() };
    });
  }

  /** Has the exec server of a container write a small file, see `writeSmall`. */
  writeSmall(container: Container, file: SmallFile, gone: AbortSignal): Promise<number | undefined> {
    return this.#whileMoving(container, () => writeSmall(this.#servers, container, file, gone));
  }

  /** Runs what is over soon, once the container is not frozen, which it is only again afterwards. */
  async #whileMoving<T>(container: Container, action: () => Promise<T>): Promise<T> {
    const leave = await this.standstills.enter(container.id);
    return action().finally(leave);
  }

  /** Starts an interactive command, with or without a terminal. Its output must be read, and `exited` awaited. */
  interact(container: Container, spec: InteractiveSpec, onTaken: (bytes: number) => void): Promise<Interactive> {
    return this.#unlessStill(container, async () => {
      const own = spec.terminal && (await this.#inOwnTerminal(container, spec, spec.terminal, onTaken));
      if (own) return own;
      const { terminal, theirs, ...streams } = streamsOf(container, spec, onTaken);
      const readers = streams.outputs.map(({ reader }) => reader);
      return { ...(await this.#start(container, spec, { terminal, theirs, readers })), ...streams };
    });
  }

  /** In a terminal that the command's keeper has; undefined where the exec server of the container does not start it so. */
  async #inOwnTerminal(container: Container, spec: ProcessSpec, size: Size, onTaken: (bytes: number) => void): Promise<Interactive | undefined> {
    const { theirs, say, ...streams } = toKeeper(onTaken);
    const ranOutOfMemory = outOfMemoryWatch(container);
    try {
      const begun = await this.#byServer(container, spec, ownTerminal(size), theirs);
      if (!begun) closeStreams(theirs);
      if (begun && (await isUnderstood(begun))) {
        const inside = insideOf(begun.pid, begun.held, say);
        return { ...this.#controlled(begun, streams.outputs), ...streams, inside, ranOutOfMemory };
      }
    } catch (error) {
      streams.close();
      throw error;
    }
    streams.close();
    return undefined;
  }

  /**
   * Goes on with a command in a terminal that a container was copied with. What it is sent and told meanwhile waits.
   *
   * @param keeper its process id in the container, as of the command in the source
   */
  takeOver(container: Container, keeper: number, size: Size, onTaken: (bytes: number) => void): Interactive {
    const { theirs, say, ...streams } = toKeeper(onTaken);
    const ranOutOfMemory = outOfMemoryWatch(container);
    const taken = this.#whileMoving(container, () => this.#servers.handOver(container, keeper, theirs)).finally(() => closeStreams(theirs));
    const kept = taken.then((found) => found ?? Promise.reject(notRunning("the terminal is not in the copy")));
    const [started, exited] = [kept.then((each) => each.started), kept.then((each) => each.exited)];
    for (const promise of [started, exited]) promise.catch(() => {}); // Not everybody waits for it.
    streams.resize(size);
    const begun = { started, exited, reaper: async () => this.#servers.keeperOf(container, keeper) };
    const inside = insideOf(keeper, async () => (await kept).held(), say);
    return { ...this.#controlled(begun, streams.outputs), ...streams, inside, ranOutOfMemory };
  }

  async #unlessStill<T extends Started | undefined>(container: Container, start: () => Promise<T>): Promise<T> {
    const leave = await this.standstills.enter(container.id);
    try {
      const command = await start();
      if (command) command.started.then(leave, leave);
      else leave();
      return command;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #start(
    container: Container,
    spec: ProcessSpec,
    { terminal, theirs, readers }: { readonly terminal: CommandTerminal | undefined; readonly theirs: Descriptors; readonly readers: readonly PipeReader[] },
  ) {
    const ranOutOfMemory = outOfMemoryWatch(container);
    const begun = (await this.#byServer(container, spec, terminal?.path, theirs)) ?? this.#runtime.start(container, spec, terminal, theirs);
    const outputs = readers.map((reader) => ({ reader }));
    return { ...this.#controlled(begun, outputs), ranOutOfMemory };
  }

  #controlled(begun: Begun, outputs: readonly Pick<Output, "reader">[]) {
    const { exited, started, reaper, strong } = begun;
    exited.finally(() => outputs.forEach(({ reader }) => reader.writerExited())).catch(() => {});
    const signal = strong?.signal ?? (async (name: NodeJS.Signals): Promise<void> => signalGroup(await reaper(), name));
    return { exited, started, signal, kill: strong?.kill ?? (() => this.#kill(begun)) };
  }

  /** Undefined when the container has no server, or none that takes the command. */
  async #byServer(container: Container, spec: ProcessSpec, terminal: string | undefined, theirs: Descriptors): Promise<(Begun & Kept) | undefined> {
    const kept = await this.#servers.start(container, spec, terminal, theirs);
    if (!kept && isCopy(container)) {
      closeStreams(theirs);
      throw fitsServer(container, spec) ? notRunning("the copy has lost its exec server") : tooLarge();
    }
    if (!kept) return undefined;
    closeStreams(theirs);
    return { ...kept, reaper: async () => this.#servers.keeperOf(container, kept.pid) };
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
    const orphans = members.filter((pid) => pid !== container.initPid && isReaper(pid) && !isIdleServer(container, pid));
    await Promise.all(orphans.map((pid) => killTree(pid)));
    return orphans.length;
  }

  async #kill({ reaper, exited }: Begun): Promise<void> {
    const ended = exited.then(
      () => true,
      () => true,
    );
    do {
      const root = await reaper();
      if (root !== undefined) await this.standstills.endTree(root);
    } while (!(await within(ended, killPauseMs)));
  }
}

const insideOf = (keeper: number, held: () => Promise<number | undefined>, say: (text: string) => void): InsideTerminal => ({
  keeper,
  hold: () => {
    const answer = held();
    say(words.hold);
    return within(answer, holdMs);
  },
  goOn: () => say(words.goOn),
});

/** Whether the kernel has killed a process of the container since this call because it was out of memory. */
function outOfMemoryWatch({ group }: Container): () => boolean {
  const oomKills = (): number => group?.oomKills() ?? 0;
  const killsBefore = oomKills();
  return () => oomKills() > killsBefore;
}

/** Whether a server knew what a message asked for. */
const isUnderstood = ({ started }: Begun): Promise<boolean> =>
  started.then(
    () => true,
    (error: unknown) => !(error instanceof NotUnderstood),
  );

const tooLarge = (): SandgateError =>
  new SandgateError("payload_too_large", "in a sandbox that continues from memory, a command with its environment may have at most 64 KiB");

/** `/bin/sh -c -- command`, so that no command is read as an option. A command too long for one argument is joined inside the shell. */
export function shellArguments(command: string): string[] {
  if (Buffer.byteLength(command) < argumentBytesMax) return ["/bin/sh", "-c", "--", command];
  const characters = [...command];
  const middle = characters.length >> 1;
  // The parts are substituted before `shift` runs, which leaves the command without arguments, as usual.
  return ["/bin/sh", "-c", 'eval "shift 2;$1$2"', "/bin/sh", characters.slice(0, middle).join(""), characters.slice(middle).join("")];
}
