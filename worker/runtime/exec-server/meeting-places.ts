/**
 * Where the exec servers of sandboxes find this worker: a folder in memory for each, of which its sandbox sees nothing but this,
 * and which it can only read. It also tells the sandbox its generation.
 */
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A server may have the ids of any user, who passes the folder. */
const passable = 0o711;
const readable = 0o644;
/** The file with a random text, which is another one for each start and for each copy. */
const generationFile = "generation";

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

  /**
   * Makes it, if it is not there, for a container that starts, with a new generation. To be called before anything runs in the
   * container: a process that continues as a copy sees by the generation that it is one, and that what must be unique is not.
   */
  make(sandboxId: string): void {
    const dir = this.of(sandboxId);
    mkdirSync(dir, { recursive: true });
    chmodSync(dir, passable);
    const written = join(dir, `.${generationFile}`);
    writeFileSync(written, `${randomUUID()}\n`);
    chmodSync(written, readable);
    // In one step, so that nobody ever reads a part of it.
    renameSync(written, join(dir, generationFile));
  }

  remove(sandboxId: string): void {
    rmSync(this.of(sandboxId), { recursive: true, force: true });
  }
}

/** The socket in such a folder, as `server.c` has it. */
export const workerSocket = (meetingPlace: string): string => join(meetingPlace, "worker");
