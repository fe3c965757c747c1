/** The machine on which the figures were measured. */
import type { Computer } from "./computer.ts";
import { loadGeneratorName } from "./http-load.ts";
import type { Installation } from "./installation.ts";

export interface Machine extends Computer {
  readonly podman: string;
  readonly runtime: string;
  readonly load: string;
}

/** @param computer as it was before anything was started */
export async function describeMachine({ agent }: Installation, computer: Computer): Promise<Machine> {
  const first = async (...argv: string[]): Promise<string> => (await agent.run(argv)).stdout.split("\n")[0] ?? "";
  const runtime = (await first("sh", "-c", "crun --version 2>/dev/null || runc --version")).replace(" version", "");
  return { ...computer, podman: (await first("podman", "--version")).replace("podman version ", ""), runtime, load: loadGeneratorName };
}
