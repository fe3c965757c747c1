/** The shortest command, run by many clients at once. */
import { inParallel, timed } from "../measure.ts";
import { compare, own, type Row } from "../rows.ts";
import { percentilesOf } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const clientCounts = [1, 8, 32] as const;
export const concurrencyTask = (clients: number): string => `execute true by ${clients} client${clients === 1 ? "" : "s"}`;

export async function concurrency(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (sandbox) => {
    const execute = (): Promise<number> => timed(() => installation.execute(sandbox.id, "true"));
    const podman = async (): Promise<number> => (await installation.agent.run([...installation.podman, "exec", sandbox.containerId, "true"])).ms;
    const rows: Row[] = [];
    for (const clients of clientCounts) {
      const task = concurrencyTask(clients);
      // Podman gets fewer calls, because each takes much longer.
      const contenders = [
        contender(own, clients, Math.max(4 * clients, 30), execute),
        contender("podman exec", clients, Math.max(clients, 6), podman),
      ] as const;
      const rounds = roundsOf(setting, task, { share: 1 / clientCounts.length, warmUp: 1 });
      const compared = await compare(task, contenders, rounds, (ms) => ({ value: 1_000 / percentilesOf(ms).p50, unit: "calls/s" }));
      // The rounds are compared by their rate; what the single calls have taken is told beside it.
      rows.push(...compared.map((row, index) => ({ ...row, ...contenders[index]?.callsOf(row.n) })));
    }
    return rows;
  });
}

/** Each round is a number of calls, kept running by so many clients; its time is that of the whole, divided by the calls. */
function contender(name: string, clients: number, calls: number, call: () => Promise<number>) {
  const rounds: number[][] = [];
  const measure = async () => {
    const { latencies, wallMs } = await inParallel(clients, calls, call);
    rounds.push(latencies);
    return { ms: wallMs / latencies.length };
  };
  const callsOf = (roundCount: number) => {
    const latencies = rounds.slice(-roundCount).flat();
    return { n: latencies.length, ...percentilesOf(latencies) };
  };
  return { name, measure, callsOf };
}
