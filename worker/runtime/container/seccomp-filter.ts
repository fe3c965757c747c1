/**
 * The program by which the kernel decides about system calls. crun makes it of the profile anew for each container, which is a fifth of
 * its work; from the second container on it is given what it has made for the first. Podman and crun then need not read the profile
 * either, which takes a fifth of Podman's time: they get one that allows nothing, so that a container without the ready filter could
 * not even start. A crun that takes no ready filter makes it as before.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import type { Host } from "../host/host.ts";

/** By which crun takes it. */
export const filterAnnotation = "run.oci.seccomp_bpf_data";
/** The file in which crun keeps it for the commands that it starts in a container. */
const fileName = "seccomp.bpf";
/** Of one instruction. */
const instructionBytes = 8;

/** The part of a container's specification that decides about its system calls. */
interface Filtered {
  readonly seccomp_profile_path: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export class SeccompFilter {
  readonly #host: Pick<Host, "crunDir" | "seccompProfiles" | "takesReadyFilters">;
  #program: string | undefined;

  constructor(host: Pick<Host, "crunDir" | "seccompProfiles" | "takesReadyFilters">) {
    this.#host = host;
  }

  /** For a container of crun's that is about to be made. */
  get specification(): Filtered {
    const { whole, empty } = this.#host.seccompProfiles;
    if (this.#program === undefined) return { seccomp_profile_path: whole, annotations: {} };
    return { seccomp_profile_path: empty, annotations: { [filterAnnotation]: this.#program } };
  }

  /** @param containerId one with this worker's profile that crun has made */
  takeFrom(containerId: string): void {
    if (this.#program !== undefined || !this.#host.takesReadyFilters) return;
    const program = attempt(() => readFileSync(join(this.#host.crunDir, containerId, fileName)));
    if (program?.length && program.length % instructionBytes === 0) this.#program = program.toString("base64");
  }
}
