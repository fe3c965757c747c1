/** The machine on which the figures were measured. */
import { cpus, loadavg, release, totalmem } from "node:os";
import { loadGeneratorName } from "./http-load.ts";
import type { Installation } from "./installation.ts";

export interface Computer {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  /** One-minute load average before anything was started. */
  readonly loadAverage: number;
}

export interface Machine extends Computer {
  readonly podman: string;
  readonly runtime: string;
  readonly load: string;
}

/** The current one-minute load average. */
export const loadAverage = (): number => loadavg()[0] ?? 0;

/** This machine as it is now. */
export function thisComputer(): Computer {
  const processors = cpus();
  const hardware = { cpu: processors[0]?.model ?? "unknown", cores: processors.length, memoryGiB: Math.round(totalmem() / 1024 ** 3) };
  return { ...hardware, kernel: release(), node: process.version, loadAverage: loadAverage() };
}

/** @param computer as it was before anything was started */
export async function describeMachine({ agent }: Installation, computer: Computer): Promise<Machine> {
  const first = async (...argv: string[]): Promise<string> => (await agent.run(argv)).stdout.split("\n")[0] ?? "";
  const runtime = (await first("sh", "-c", "crun --version 2>/dev/null || runc --version")).replace(" version", "");
  return { ...computer, podman: (await first("podman", "--version")).replace("podman version ", ""), runtime, load: loadGeneratorName };
}

/** The machine in one line. */
export const computerText = ({ cpu, cores, memoryGiB, kernel, loadAverage }: Computer): string =>
  `${cpu}, ${cores} cores, ${memoryGiB} GiB, Linux ${kernel}, load average at start ${loadAverage.toFixed(2)}`;
