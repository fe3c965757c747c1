/**
 * The program by which the kernel decides about system calls. crun makes it of the profile anew for each container, which is a fifth of
 * its work; from the second container on it is given what it has made for the first. A crun that does not know that annotation makes
 * it as before.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import type { Host } from "../host/host.ts";

const annotation = "run.oci.seccomp_bpf_data";
/** The file in which crun keeps it for the commands that it starts in a container. */
const fileName = "seccomp.bpf";
/** Of one instruction. */
const instructionBytes = 8;

export class SeccompFilter {
  readonly #host: Pick<Host, "crunDir">;
  #program: string | undefined;

  constructor(host: Pick<Host, "crunDir">) {
    this.#host = host;
  }

  /** What a container is described with that is to have it. */
  get annotations(): Readonly<Record<string, string>> {
    return this.#program === undefined ? {} : { [annotation]: this.#program };
  }

  /** @param containerId one with this worker's profile that crun has made */
  takeFrom(containerId: string): void {
    if (this.#program !== undefined) return;
    const program = attempt(() => readFileSync(join(this.#host.crunDir, containerId, fileName)));
    if (program?.length && program.length % instructionBytes === 0) this.#program = program.toString("base64");
  }
}
