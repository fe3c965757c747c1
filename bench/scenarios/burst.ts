/** The method of public comparisons of sandbox services, with the load generator: from a create to the answer of its first command. */

import { growingPool, Installation } from "../installation.ts";
import { Latencies } from "../load/latencies.ts";
import { parseOptions } from "../load/options.ts";
import type { Result } from "../load/result.ts";
import { runLoad } from "../load/run.ts";
import firstCommand from "../load/workloads/first-command.ts";
import { own, type Row, rowOf } from "../rows.ts";
import type { Setting } from "./setting.ts";

const mix = "first-command";
const stepName = firstCommand.steps.map(({ name }) => name).join();
const taskOf = ({ name, count }: { readonly name: string; readonly count: number }): string => `create to first command, ${count} ${name}`;

/** How many creates each task has: its row counts those that succeeded. */
export const burstTasks = firstCommand.phases.map((phase) => ({ task: taskOf(phase), count: phase.count }));
const atOnce = firstCommand.phases.find(({ everyMs }) => everyMs === 0) as (typeof firstCommand.phases)[number];
export const atOnceTask = taskOf(atOnce);
export const allAtOnceTask = `${atOnceTask}, until all have answered`;

/** Takes as long as its creates, whatever the time that it is given. */
export async function burst({ signal, say }: Setting): Promise<Row[]> {
  const installation = await Installation.start(growingPool);
  try {
    const { url, apiKey } = installation.stack;
    const wanted = await parseOptions(["--url", url, "--key", apiKey, "--mix", mix]);
    if (wanted.kind !== "load") throw new Error("this is a load");
    const show = { task: <T>(title: string, object: string, work: (tell: typeof say) => Promise<T>) => work((text) => say(`${title} ${object}: ${text}`)) };
    const result = await runLoad(wanted.options, show, signal);
    signal.throwIfAborted();
    return rowsOfLoad(result);
  } finally {
    await installation.stop();
  }
}

export function rowsOfLoad({ rows }: Pick<Result, "rows">): Row[] {
  const timesOf = (phase: string): number[] => {
    const { intervals = [] } = rows.find(({ name }) => name === `${phase}: ${stepName}`) ?? {};
    return intervals.flatMap(({ histogram }) => [...Latencies.decode(histogram).values()].flatMap(([ms, count]) => new Array<number>(count).fill(ms)));
  };
  const all = timesOf(atOnce.name);
  return [
    ...firstCommand.phases.map((phase) => rowOf(taskOf(phase), own, timesOf(phase.name))),
    // All began at the same time, so the last one ends the whole; there is no such time if one has failed.
    rowOf(allAtOnceTask, own, all.length === atOnce.count ? [Math.max(...all)] : []),
  ];
}
