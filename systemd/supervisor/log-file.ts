/** The log of one part, rotated when it grows large. */
import { closeSync, constants, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { visible } from "../base/terminal.ts";
import { trustedPath } from "../base/trusted-path.mjs";

const bytesMax = 32 * 1024 * 1024;
const append = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

/** Two files of at most 32 MiB for each part: `NAME.log`, and the earlier `NAME.log.1`. */
export class LogFile {
  readonly path: string;
  #descriptor: number;
  #bytes: number;

  constructor(path: string) {
    this.path = path;
    trustedPath(dirname(path));
    this.#descriptor = openSync(path, append, 0o600);
    this.#bytes = fstatSync(this.#descriptor).size;
  }

  /**
   * Writes synchronously, so that a part's last words are kept whatever happens next. On a full disk, lines are lost but the
   * parts keep running. Control characters are escaped, so that the file is safe to show in a terminal.
   */
  write(line: string): void {
    try {
      if (this.#bytes > bytesMax) this.#rotate();
      this.#bytes += writeSync(this.#descriptor, `${visible(line)}\n`);
    } catch {
      return;
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #rotate(): void {
    renameSync(this.path, `${this.path}.1`);
    closeSync(this.#descriptor);
    this.#descriptor = openSync(this.path, append, 0o600);
    this.#bytes = 0;
  }
}
