/**
 * Copies: containers whose processes continue from an image of memory. Podman has made such a container and not started it, so its
 * first process waits. It holds what is the container's own: its root, its mounts and its control group. The copied processes
 * are in that group, in namespaces of their own, into which the worker cannot look.
 *
 * What is known of them lies in memory, as they do, so that the next process of this worker finds them.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { startTimeOf } from "../process/proc.ts";

/** A process that waits in the place of a container's first, and the folder of its control group. */
export interface Waiting {
  readonly pid: number;
  readonly group: string;
}

/** The first process of a copy. */
export interface CopyProcess {
  readonly pid: number;
  /** Tells it from a later process with the same number. */
  readonly startTime: number;
}

interface CopyRecord extends Waiting {
  readonly copy?: CopyProcess;
}

export class Copies {
  readonly #dir: string;

  /** @param dir a folder in memory of this worker */
  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** To be called before anything is copied into a container. */
  prepare(containerId: string, waiting: Waiting): void {
    this.#write(containerId, waiting);
  }

  /** Notes the first process of the copy. @throws {Error} if it has ended already */
  begin(containerId: string, pid: number): void {
    const record = this.#read(containerId);
    const startTime = startTimeOf(pid);
    if (!record || startTime === undefined) throw new Error("the copy has ended");
    this.#write(containerId, { ...record, copy: { pid, startTime } });
  }

  /** The running copy in a container, and what waits there; undefined if there is none, or none any more. */
  of(containerId: string): { readonly copy: CopyProcess; readonly waiting: Waiting } | undefined {
    const { copy, ...waiting } = this.#read(containerId) ?? {};
    return copy && startTimeOf(copy.pid) === copy.startTime ? { copy, waiting: waiting as Waiting } : undefined;
  }

  /**
   * Kills all that is or was to be copied into a container, and what waits there.
   *
   * @returns whether it is such a container. It cannot be started: its network went with the copy, and Podman takes it for one that waits.
   */
  end(containerId: string): boolean {
    const record = this.#read(containerId);
    if (record) attempt(() => writeFileSync(join(record.group, "cgroup.kill"), "1"));
    return record !== undefined;
  }

  /** To be called when the container is gone. */
  forget(containerId: string): void {
    rmSync(this.#file(containerId), { force: true });
  }

  #read(containerId: string): CopyRecord | undefined {
    return attempt(() => JSON.parse(readFileSync(this.#file(containerId), "utf8")) as CopyRecord);
  }

  #write(containerId: string, record: CopyRecord): void {
    const file = this.#file(containerId);
    writeFileSync(`${file}.partial`, JSON.stringify(record));
    renameSync(`${file}.partial`, file);
  }

  #file(containerId: string): string {
    return join(this.#dir, containerId);
  }
}
