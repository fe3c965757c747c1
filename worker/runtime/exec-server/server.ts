/** The connection to the exec server of one sandbox: how the server is started or found again, and known from others that connect. */
import { closeSync, readFileSync, rmSync, statSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { acceptConnection, listenForMessages, targetOf } from "../../../shared/util/libc.ts";
import { pause, until } from "../../../shared/waiting.ts";
import { type Container, isCopy, isThere } from "../container/container.ts";
import { execServerPath } from "../container/first-process.ts";
import { childrenOf, commandLineOf, parentOf, pidNamespaceOf, signal, startTimeOf } from "../process/proc.ts";
import { workerSocket } from "./meeting-places.ts";

/**
 * How long a server may take to take a command: five seconds. Counted in steps, because all the time for which this process itself
 * stood still is one step: what the server has said meanwhile is read before the next.
 */
export const patience = { steps: 10, stepMs: 500 };
/** What the kernel calls a server. Keepers have another name. */
const serverName = ".sandgate-exec\n";
/** What it calls a sandbox's first process that has not started a server yet, and will when it finds the worker. */
const firstName = serverName;
/** How soon it is noticed that a server has connected: one that was just started, and one of an earlier process of this worker. */
const acceptPollMs = 2;
const returnPollMs = 20;
/** The longest pause of a server that looks for its worker, with time to spare: one that is there and does not come is replaced. */
const returnMs = 2_000;
/** How long a server takes at most to close a connection that has ended. */
const releaseMs = 50;

/** Starts a server in a sandbox. Resolves to whether it could be started. */
export type StartServer = (container: Container) => Promise<boolean>;

export class Server {
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
      // Looked at before there is a socket: it may start one as soon as there is.
      const willStart = await this.#firstWillStart();
      listener = listenForMessages(path);
      const first = willStart ? await this.#accepted(listener, { timeoutMs: returnMs, pollMs: acceptPollMs }) : undefined;
      return first ?? (await this.#returning(listener)) ?? (await this.#started(listener, start));
    } catch {
      return undefined; // The sandbox is gone.
    } finally {
      if (listener !== undefined) closeSync(listener);
      rmSync(path, { force: true });
    }
  }

  /** Whether the sandbox's first process starts a server when it finds the worker: it has not started one before. */
  async #firstWillStart(): Promise<boolean> {
    const { initPid, process } = this.container;
    const isBegun = (): boolean => commandLineOf(initPid)[0] === execServerPath;
    // A container counts as started a moment before the OCI runtime has made that process of itself.
    if (process.args?.[0] === execServerPath) await until(() => isBegun() || !isThere(this.container), { timeoutMs: returnMs, pollMs: 1 });
    return isBegun() && nameOf(initPid) === firstName;
  }

  /** That of an earlier process of this worker, if it is there. */
  async #returning(listener: number): Promise<number | undefined> {
    if (idleServersIn(this.container).length === 0) return undefined;
    this.isReturning = true;
    const socket = await this.#accepted(listener, { timeoutMs: returnMs, pollMs: returnPollMs });
    this.isReturning = false;
    if (socket === undefined) this.#endIdle();
    return socket;
  }

  /** Ends other servers. A worker that was killed while it started one may have left it beside that which the next worker has started. */
  #endIdle(kept?: number): void {
    for (const pid of idleServersIn(this.container)) if (pid !== kept) signal(pid, "SIGKILL", this.container.pidNamespace);
  }

  async #started(listener: number, start: StartServer): Promise<number | undefined> {
    // The runtime cannot start anything in a copy.
    return !isCopy(this.container) && (await start(this.container))
      ? this.#accepted(listener, { timeoutMs: patience.steps * patience.stepMs, pollMs: acceptPollMs })
      : undefined;
  }

  async #accepted(listener: number, polling: Parameters<typeof until>[1]): Promise<number | undefined> {
    let socket: number | undefined;
    const isAccepted = (): boolean => {
      for (let next = acceptConnection(listener); next; next = acceptConnection(listener)) {
        const { fd, pid } = next;
        if (isIdleServer(this.container, pid)) {
          this.#process = { pid, startTime: startTimeOf(pid) };
          this.#endIdle(pid);
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

  /** Resolves when the process has closed its end, too; after a moment where that cannot be seen. */
  async released(pid: number): Promise<void> {
    const standardInput = (): string | undefined => targetOf(`/proc/${pid}/fd/0`);
    if (standardInput() === undefined) return pause(releaseMs);
    await until(() => !standardInput()?.startsWith("socket:"), { timeoutMs: returnMs, pollMs: acceptPollMs });
  }

  close(): void {
    void this.socket.then((fd) => fd !== undefined && closeSync(fd));
  }
}

/**
 * Whether a process is the server of a sandbox, and not a keeper, or a copy that a command has started: those have parents of
 * their own. Nobody but the sandbox is harmed if it makes a process look like one.
 */
export function isIdleServer(container: Pick<Container, "initPid" | "doorPid">, pid: number): boolean {
  if (parentOf(pid) !== container.initPid || commandLineOf(pid)[0] !== execServerPath) return false;
  return nameOf(pid) === serverName && isOurProgram(container, pid);
}

/** What the kernel calls a process; undefined when it is gone. */
const nameOf = (pid: number): string | undefined => attempt(() => readFileSync(`/proc/${pid}/comm`, "utf8"));

export const idleServersIn = (container: Container): number[] => childrenOf(container.initPid).filter((pid) => isIdleServer(container, pid));

/** Whether it runs the program that is mounted for it. */
function isOurProgram({ initPid, doorPid }: Pick<Container, "initPid" | "doorPid">, pid: number): boolean {
  const [mounted, running] = [`/proc/${doorPid}/root${execServerPath}`, `/proc/${pid}/exe`].map((path) => attempt(() => statSync(path)));
  // Into a copy nobody can look.
  if (isCopy({ doorPid, initPid }) && running === undefined) return true;
  return mounted !== undefined && mounted.ino === running?.ino && mounted.dev === running.dev;
}
