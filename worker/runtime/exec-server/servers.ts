/**
 * The exec servers of this worker's sandboxes. Each is a process in its sandbox that starts commands by fork and exec, which takes
 * a fraction of what a start of the OCI runtime takes. It connects to the worker, and to the next one when that is gone. The
 * sandbox may end, stop or take over its server, and whoever does so harms only that sandbox: the server has nothing but its own
 * sandbox's commands, and the runtime starts them when it does not.
 */
import { closeSync, openSync } from "node:fs";
import { faultPoint } from "../../../shared/faults.ts";
import { sendMessage } from "../../../shared/util/libc.ts";
import { within } from "../../../shared/waiting.ts";
import type { ProcessSpec } from "../container/command.ts";
import { type Container, isCopy, isThere, notRunning } from "../container/container.ts";
import { servedFailure } from "../container/failures.ts";
import { execServerPath } from "../container/first-process.ts";
import { processOf } from "../container/start.ts";
import { childrenOf, commandLineOf, innerPidOf, signal } from "../process/proc.ts";
import type { Descriptors } from "../process/program.ts";
import { type Kept, Reports, type StartFailure } from "./keeper.ts";
import { groupsMessage, handOverMessage, isWorkers, messageOf, mistakenStage, ownWorkMessage } from "./message.ts";
import { idleServersIn, patience, Server, type StartServer } from "./server.ts";

/** Pause after a server was lost, for the sandbox may go on ending it. */
const restMs = 1_000;

export class ExecServers {
  readonly #start: StartServer;
  /** By the ids of containers. */
  readonly #servers = new Map<string, Server>();
  /** Until when none is started, by the ids of containers. */
  readonly #resting = new Map<string, number>();
  readonly #nothing = openSync("/dev/null", "r+");

  constructor(start: StartServer) {
    this.#start = start;
  }

  /** Starts a sandbox's server if it can have one, so that its first command finds it. */
  async prepare(container: Container): Promise<void> {
    await this.#serverOf(container)?.socket;
  }

  /** Takes over the server of an earlier process of this worker, if the sandbox has one. */
  async resume(container: Container): Promise<void> {
    if (idleServersIn(container).length > 0) await this.prepare(container);
  }

  /**
   * Ends the connection to a sandbox's server. It looks for its worker then, and comes back when it is prepared again. Resolves when
   * it has let go as well. No command may be started meanwhile.
   */
  async release(container: Container): Promise<void> {
    const server = this.#servers.get(container.id);
    if (!server) return;
    const { pid } = server;
    this.#servers.delete(container.id);
    server.isLost = true;
    await server.socket;
    server.close();
    if (pid !== undefined) await server.released(pid);
  }

  /**
   * Has the server of a sandbox start a command.
   *
   * @param terminal as in its message; the path of one is what it has instead of `theirs`
   * @param theirs stay open here, also if the server does not take the command
   * @returns undefined when it does not, so that the command neither runs nor will; what is returned rejects with `NotUnderstood` where
   *   the server is of an earlier version
   */
  start(container: Container, spec: ProcessSpec, terminal: string | undefined, theirs: Descriptors): Promise<Kept | undefined> {
    const message = messageOf({ terminal, process: processOf(container, spec, spec.args) });
    const failure: StartFailure = (report) => (report.stage === mistakenStage ? new NotUnderstood() : servedFailure(report, spec, container));
    return this.#tell(container, message, isWorkers(terminal) ? [] : this.#streams(theirs), failure);
  }

  /**
   * Has the server of a sandbox do something itself, which has an exit code like a command. Rejects what a server of an earlier
   * version takes for a mistake.
   *
   * @param args as `files.c` has them
   * @param theirs as for `start`
   * @returns undefined when it does not, and will not
   */
  work(container: Container, args: readonly string[], theirs: Descriptors): Promise<Kept | undefined> {
    const failure: StartFailure = ({ stage, errno }) => new Error(`stage ${stage} failed with error ${errno}`);
    return this.#tell(container, ownWorkMessage(args), this.#streams(theirs), failure);
  }

  /** Has the commands that a sandbox's server starts be in the groups of the container's user. If it cannot, the runtime starts another that is. */
  async joinGroups(container: Container): Promise<void> {
    const gids = container.process.user?.additionalGids ?? [];
    if (gids.length > 0) await this.#tell(container, groupsMessage(gids), [], () => new Error("the groups were refused"));
  }

  /**
   * Has the keeper of a terminal go on with other descriptors, which stay open here.
   *
   * @param keeper its process id in the sandbox
   * @returns undefined when there is no such keeper, or the server cannot reach it
   */
  async handOver(container: Container, keeper: number, theirs: Descriptors): Promise<Kept | undefined> {
    const socket = await this.#serverOf(container)?.socket;
    if (socket === undefined) return undefined;
    const reports = new Reports(() => notRunning("the command's keeper does not go on"));
    const isSent = sendMessage(socket, handOverMessage(keeper), [...this.#streams(theirs), reports.theirFd]);
    closeSync(reports.theirFd);
    const kept = isSent ? await within(reports.kept, patience.steps * patience.stepMs) : undefined;
    if (!kept) reports.close();
    return kept;
  }

  #streams({ stdin, stdout, stderr }: Descriptors): number[] {
    return [stdin, stdout, stderr].map((fd) => fd ?? this.#nothing);
  }

  async #tell(container: Container, message: Buffer | undefined, streams: readonly number[], failure: StartFailure): Promise<Kept | undefined> {
    const server = this.#serverOf(container);
    const socket = server?.isReturning && !isCopy(container) ? undefined : await server?.socket;
    if (!server || !message || socket === undefined || server.isLost) return undefined;
    const reports = new Reports(failure);
    const isSent = sendMessage(socket, message, [...streams, reports.theirFd]);
    closeSync(reports.theirFd);
    if (!isSent) {
      reports.close();
      this.#lose(server);
      return undefined;
    }
    // Nobody has the pipe any more once the server is gone, and what it has not taken is lost.
    let steps = 0;
    const timer = setInterval(() => ++steps === patience.steps && this.#giveUp(server), patience.stepMs);
    faultPoint("execute.sent");
    const kept = await reports.kept;
    clearInterval(timer);
    if (!kept) {
      this.#lose(server);
      return undefined;
    }
    server.keepers.add(kept.pid);
    const forget = (): void => void server.keepers.delete(kept.pid);
    kept.exited.then(forget, forget);
    return kept;
  }

  /** The host's process id of a keeper; undefined when it is gone. */
  keeperOf({ initPid }: Container, innerPid: number): number | undefined {
    return programsIn(initPid).find((pid) => innerPidOf(pid) === innerPid);
  }

  /** The host's process id of a sandbox's server; undefined when it has none. */
  pidIn({ id, pidNamespace }: Container): number | undefined {
    const server = this.#servers.get(id);
    return server?.container.pidNamespace === pidNamespace ? server.pid : undefined;
  }

  #serverOf(container: Container): Server | undefined {
    if (container.meetingPlace === undefined) return undefined;
    const known = this.#servers.get(container.id);
    if (known?.container.pidNamespace === container.pidNamespace) return known;
    this.#sweep();
    if ((this.#resting.get(container.id) ?? 0) > performance.now()) return undefined;
    const server = new Server(container, container.meetingPlace, this.#start);
    this.#servers.set(container.id, server);
    void server.socket.then((socket) => socket === undefined && this.#lose(server));
    return server;
  }

  /** Ends a server that neither takes a command nor refuses it, and copies of it that have none yet. */
  #giveUp(server: Server): void {
    const { initPid, pidNamespace } = server.container;
    const idle = programsIn(initPid).filter((pid) => !server.keepers.has(innerPidOf(pid) ?? 0));
    this.#lose(server);
    for (const pid of idle) signal(pid, "SIGKILL", pidNamespace);
  }

  /** Ends a server that takes no more commands. Those that it has started go on. */
  #lose(server: Server): void {
    if (server.isLost) return;
    server.isLost = true;
    const { id, pidNamespace } = server.container;
    if (this.#servers.get(id) === server) this.#servers.delete(id);
    this.#resting.set(id, performance.now() + restMs);
    if (server.pid !== undefined) signal(server.pid, "SIGKILL", pidNamespace);
    server.close();
  }

  /** Forgets those of containers that are gone. */
  #sweep(): void {
    for (const [id, server] of this.#servers) {
      if (isThere(server.container)) continue;
      this.#servers.delete(id);
      server.close();
    }
    for (const [id, untilMs] of this.#resting) if (untilMs < performance.now()) this.#resting.delete(id);
  }
}

/** The server is of an earlier version, and knows no such message. */
export class NotUnderstood extends Error {}

/** Whether the server of a sandbox could take a command. */
export const fitsServer = (container: Container, spec: ProcessSpec): boolean =>
  messageOf({ terminal: undefined, process: processOf(container, spec, spec.args) }) !== undefined;

/** Host process ids of a sandbox's server and its keepers. A keeper whose server is gone is a child of the first process. */
function programsIn(initPid: number): number[] {
  return childrenOf(initPid).flatMap((pid) => (commandLineOf(pid)[0] === execServerPath ? [pid, ...childrenOf(pid)] : []));
}
