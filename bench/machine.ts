/** The machine on which the figures were measured. */
import { cpus, loadavg, release, totalmem } from "node:os";
import type { Installation } from "./installation.ts";
import { loadGeneratorName } from "./load.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly podman: string;
  readonly runtime: string;
  readonly node: string;
  readonly load: string;
  /** One-minute load average before anything was started. */
  readonly loadAverage: number;
}

/** The current one-minute load average. */
export const loadAverage = (): number => loadavg()[0] ?? 0;

export async function describeMachine({ agent }: Installation, loadAverageAtStart: number): Promise<Machine> {
  const first = async (...argv: string[]): Promise<string> => (await agent.run(argv)).stdout.split("\n")[0] ?? "";
  const runtime = await first("sh", "-c", "crun --version 2>/dev/null || runc --version");
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    podman: (await first("podman", "--version")).replace("podman version ", ""),
    runtime: runtime.replace(" version", ""),
    node: process.version,
    load: await loadGeneratorName(),
    loadAverage: loadAverageAtStart,
  };
}
