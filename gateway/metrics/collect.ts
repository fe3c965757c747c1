/** Metrics whose values are kept elsewhere. */
import type { Counter, Gauge, Registry } from "prom-client";

export type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Registers a metric whose values are kept elsewhere and read when they are asked for. */
export function collect(
  registry: Registry,
  Kind: typeof Gauge | typeof Counter,
  name: string,
  help: string,
  read: () => Iterable<Reading>,
  ...labelNames: string[]
): void {
  const metric = new Kind({
    ...{ name, help, labelNames, registers: [registry] },
    collect() {
      metric.reset();
      for (const [labels, value] of read()) metric.inc(labels, value);
    },
  });
}
