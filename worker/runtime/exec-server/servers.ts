/**
 * The exec servers of this worker's sandboxes. Each is a process in its sandbox that starts commands by fork and exec, which takes
 * a fraction of what a start of the OCI runtime takes. It connects to the worker, and to the next one when that is gone. The
 * sandbox may end, stop or take over its server, and whoever does so harms only that sandbox: the server has nothing but its own
 * sandbox's commands, and the runtime starts them when it does not.
 */
import { closeSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { acceptConnection, listenForMessages, sendMessage } from "../../../shared/util/libc.ts";
import { until } from "../../../shared/waiting.ts";
import { faultPoint } from "../../faults.ts";
import type { ProcessSpec } from "../container/command.ts";
import type { Container } from "../container/container.ts";
import { execServerPath } from "../container/first-process.ts";
import { processOf } from "../container/start.ts";
import { childrenOf, commandLineOf, innerPidOf, parentOf, pidNamespaceOf, signal, startTimeOf } from "../process/proc.ts";
import type { Descriptors } from "../process/program.ts";
import { type Kept, Reports } from "./keeper.ts";
import { workerSocket } from "./meeting-places.ts";
import { messageOf } from "./message.ts";

/**
 * How long a server may take to take a command: five seconds. Counted in steps, because all the time for which this process itself
 * stood still is one step: what the server has said meanwhile is read before the next.
 */
const patience = { steps: 10, stepMs: 500 };
/** Pause after a server was lost, for the sandbox may go on ending it. */
const restMs = 1_000;
/** What the kernel calls a server. Keepers have another name. */
const serverName = ".sandgate-exec\n";

/** How soon it is noticed that a server has connected: one that was just started, and one of an earlier process of this worker. */
const acceptPollMs = 2;
const returnPollMs = 20;
/** The longest pause of a server that looks for its worker, with time to spare: one that is there and does not come is replaced. */
const returnMs = 2_000;

/** Starts a server in a sandbox. Resolves to whether it could be started. */
export type StartServer = (container: Container) => Promise<boolean>;

class Server {
  readonly container: Container;
  /** The connection to it; undefined when there was none in time. */
  readonly socket: Promise<number | undefined>;
  isLost = false;
  /** While the server of an earlier process of this worker is waited for, which may take a second. */
  isReturning = false;
  /** Keepers that have their commands, by their process ids in the sandbox. */
  readonly keepers = new Set<number>();
  /** Of the host; the time tells it from a later process with the same number. */
  #process: { readonly pid: number; readonly startTime: number | undefined } | undefined;

  constructor(container: Container, meetingPlace: string, start: StartServer) {
    this.container = container;
    this.socket = this.#open(workerSocket(meetingPlace), start);
  }

  async #open(path: string, start: StartServer): Promise<number | undefined> {
    let listener: number | undefined;
    try {
      rmSync(path, { force: true });
      listener = listenForMessages(path);
      return (await this.#returning(listener)) ?? (await this.#started(listener, start));
    } catch {
      return undefined; // The sandbox is gone.
    } finally {
      if (listener !== undefined) closeSync(listener);
      rmSync(path, { force: true });
    }
  }

  /** That of an earlier process of this worker, if it is there. */
  async #returning(listener: number): Promise<number | undefined> {
    if (idleServersIn(this.container).length === 0) return undefined;
    this.isReturning = true;
    const socket = await this.#accepted(listener, { timeoutMs: returnMs, pollMs: returnPollMs });
    this.isReturning = false;
    if (socket === undefined) for (const pid of idleServersIn(this.container)) signal(pid, "SIGKILL", this.container.pidNamespace);
    return socket;
  }

  async #started(listener: number, start: StartServer): Promise<number | undefined> {
    return (await start(this.container)) ? this.#accepted(listener, { timeoutMs: patience.steps * patience.stepMs, pollMs: acceptPollMs }) : undefined;
  }

  async #accepted(listener: number, polling: Parameters<typeof until>[1]): Promise<number | undefined> {
    let socket: number | undefined;
    const isAccepted = (): boolean => {
      for (let next = acceptConnection(listener); next; next = acceptConnection(listener)) {
        const { fd, pid } = next;
        if (isIdleServer(this.container, pid)) {
          this.#process = { pid, startTime: startTimeOf(pid) };
          socket = fd;
          return true;
        }
        closeSync(fd);
      }
      return false;
    };
    await until(isAccepted, polling);
    return socket;
  }

  /** The host's process id; undefined while it does not run. */
  get pid(): number | undefined {
    const { pid, startTime } = this.#process ?? {};
    return pid !== undefined && startTimeOf(pid) === startTime && pidNamespaceOf(pid) === this.container.pidNamespace ? pid : undefined;
  }

  close(): void {
    void this.socket.then((fd) => fd !== undefined && closeSync(fd));
  }
}

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
   * Has the server of a sandbox start a command.
   *
   * @param terminal the path of the command's terminal in the sandbox, which it has instead of `theirs`
   * @param theirs stay open here, also if the server does not take the command
   * @returns undefined when it does not, so that the command neither runs nor will
   */
  async start(container: Container, spec: ProcessSpec, terminal: string | undefined, theirs: Descriptors): Promise<Kept | undefined> {
    const server = this.#serverOf(container);
    const message = messageOf({ terminal, process: processOf(container, spec, spec.args) });
    const socket = server?.isReturning ? undefined : await server?.socket;
    if (!server || !message || socket === undefined || server.isLost) return undefined;
    const reports = new Reports();
    const streams = terminal === undefined ? [theirs.stdin, theirs.stdout, theirs.stderr].map((fd) => fd ?? this.#nothing) : [];
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
    const kept = await reports.kept(spec, container);
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
      if (pidNamespaceOf(server.container.initPid) === server.container.pidNamespace) continue;
      this.#servers.delete(id);
      server.close();
    }
    for (const [id, untilMs] of this.#resting) if (untilMs < performance.now()) this.#resting.delete(id);
  }
}

/**
 * Whether a process is the server of a sandbox, and not a keeper, or a copy that a command has started: those have parents of
 * their own. Nobody but the sandbox is harmed if it makes a process look like one.
 */
export function isIdleServer({ initPid }: Pick<Container, "initPid">, pid: number): boolean {
  if (parentOf(pid) !== initPid || commandLineOf(pid)[0] !== execServerPath) return false;
  return attempt(() => readFileSync(`/proc/${pid}/comm`, "utf8")) === serverName && isOurProgram(initPid, pid);
}

const idleServersIn = (container: Container): number[] => childrenOf(container.initPid).filter((pid) => isIdleServer(container, pid));

/** Whether it runs the program that is mounted for it. */
function isOurProgram(initPid: number, pid: number): boolean {
  const [mounted, running] = [`/proc/${initPid}/root${execServerPath}`, `/proc/${pid}/exe`].map((path) => attempt(() => statSync(path)));
  return mounted !== undefined && mounted.ino === running?.ino && mounted.dev === running.dev;
}

/** Host process ids of a sandbox's server and its keepers. A keeper whose server is gone is a child of the first process. */
function programsIn(initPid: number): number[] {
  return childrenOf(initPid).flatMap((pid) => (commandLineOf(pid)[0] === execServerPath ? [pid, ...childrenOf(pid)] : []));
}
