/** The machine on which this process runs. */
import { cpus, loadavg, release, totalmem } from "node:os";

export interface Computer {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  /** One-minute load average before anything was started. */
  readonly loadAverage: number;
}

/** The current one-minute load average. */
export const loadAverage = (): number => loadavg()[0] ?? 0;

/** This machine as it is now. */
export function thisComputer(): Computer {
  const processors = cpus();
  const hardware = { cpu: processors[0]?.model ?? "unknown", cores: processors.length, memoryGiB: Math.round(totalmem() / 1024 ** 3) };
  return { ...hardware, kernel: release(), node: process.version, loadAverage: loadAverage() };
}

/** The machine in one line. */
export const computerText = ({ cpu, cores, memoryGiB, kernel, loadAverage }: Computer): string =>
  `${cpu}, ${cores} cores, ${memoryGiB} GiB, Linux ${kernel}, load average at start ${loadAverage.toFixed(2)}`;
