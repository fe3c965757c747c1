/** The shortest command, run by many clients at once. */
import { inParallel, timed } from "../measure.ts";
import { own, type Row, rowOf } from "../rows.ts";
import type { Setting } from "./setting.ts";

const clientCounts = [1, 8, 32] as const;
const rounds = 2;

interface Contender {
  readonly name: string;
  /** Calls in one round; podman gets fewer, because each takes much longer. */
  readonly calls: (clients: number) => number;
  readonly call: () => Promise<number>;
}

export async function concurrency({ installation, runs, signal, say }: Setting): Promise<Row[]> {
  return installation.withSandbox(async (sandbox) => {
    const contenders: Contender[] = [
      {
        name: own,
        calls: (clients) => Math.max(4 * clients, runs),
        call: () => timed(() => installation.execute(sandbox.id, "true")),
      },
      {
        name: "podman exec",
        calls: (clients) => Math.max(clients, Math.round(runs / 5)),
        call: async () => (await installation.agent.run(["podman", "exec", sandbox.containerId, "true"])).ms,
      },
    ];
    for (const { call } of contenders) await inParallel(8, 16, call);
    const rows: Row[] = [];
    for (const clients of clientCounts) {
      say(`execute by ${clients} at once`);
      rows.push(...(await compare(contenders, clients, signal)));
    }
    return rows;
  });
}

async function compare(contenders: readonly Contender[], clients: number, signal: AbortSignal): Promise<Row[]> {
  const results = contenders.map((contender) => ({ ...contender, latencies: [] as number[], wallMs: 0 }));
  for (let round = 0; round < rounds; round++) {
    for (const result of results) {
      signal.throwIfAborted();
      const { latencies, wallMs } = await inParallel(clients, result.calls(clients), result.call);
      result.latencies.push(...latencies);
      result.wallMs += wallMs;
    }
  }
  const task = clients === 1 ? "execute true by 1 client" : `execute true by ${clients} clients`;
  return results.map(({ name, latencies, wallMs }) => rowOf(task, name, latencies, { value: (latencies.length * 1_000) / wallMs, unit: "calls/s" }));
}
