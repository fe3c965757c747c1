/**
 * Where the exec servers of sandboxes find this worker: a folder in memory for each, of which its sandbox sees nothing but this,
 * and which it can only read.
 */
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** A server may have the ids of any user, who passes the folder. */
const passable = 0o711;

export class MeetingPlaces {
  readonly #dir: string;

  /** @param dir is made when it is needed */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /** That of a sandbox on the host. */
  of(sandboxId: string): string {
    return join(this.#dir, sandboxId);
  }

  /** Makes it, if it is not there, for a container that starts. */
  make(sandboxId: string): void {
    mkdirSync(this.of(sandboxId), { recursive: true });
    chmodSync(this.of(sandboxId), passable);
  }

  remove(sandboxId: string): void {
    rmSync(this.of(sandboxId), { recursive: true, force: true });
  }
}

/** The socket in such a folder, as `server.c` has it. */
export const workerSocket = (meetingPlace: string): string => join(meetingPlace, "worker");
