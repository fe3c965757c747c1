/**
 * Where the exec servers of sandboxes find this worker: a folder in memory for each, of which its sandbox sees nothing but this,
 * and which it can only read. It also tells the sandbox its generation.
 */
import { randomUUID } from "node:crypto";
import { chmodSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MountedPath, makePassable, readable } from "../container/mounted-path.ts";

/** The file with a random text, which is another one for each start and for each copy. */
const generationFile = "generation";

export class MeetingPlaces extends MountedPath {
  /**
   * Makes it, if it is not there, with a new generation: a process that continues as a copy sees by the generation that it is one,
   * and that what must be unique is not.
   */
  override make(sandboxId: string): void {
    const dir = this.of(sandboxId);
    makePassable(dir);
    const written = join(dir, `.${generationFile}`);
    writeFileSync(written, `${randomUUID()}\n`);
    chmodSync(written, readable);
    // In one step, so that nobody ever reads a part of it.
    renameSync(written, join(dir, generationFile));
  }
}

/** The socket in such a folder, as `server.c` has it. */
export const workerSocket = (meetingPlace: string): string => join(meetingPlace, "worker");
