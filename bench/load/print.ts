/** The result of a load on the terminal. */
import { bytesText } from "../../shared/cli/output.ts";
import { alignColumns } from "../../shared/util/columns.ts";
import type { Terminal } from "../../systemd/base/terminal.ts";
import { computerText } from "../computer.ts";
import { precise } from "../precise.ts";
import type { Result, RowResult } from "./result.ts";

/** Every row needs at least this many values before its 99th percentile means anything. */
export const p99CountMin = 100;

const bytesPerMB = 1_000_000;
/** MB/s; less is not what a load is about. */
const leastShown = 0.1;

export const rowHeadings = ["", "n", "success", "failed", "429", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "max ms", "MB/s"] as const;

export function printResult(terminal: Terminal, result: Result): void {
  terminal.line();
  terminal.line(terminal.paint("bold", `${result.mix}: ${result.load}`));
  terminal.line(`${result.target}, run ${result.runId}, from ${computerText(result.machine)}`);
  terminal.line();
  table(
    terminal,
    rowHeadings,
    result.rows.map((row) => cellsOf(row, result)),
    1,
  );
  terminal.line();
  if (result.limit) {
    const steps = result.limit.steps.map(({ rate, achievedPerS, p50, p99, failures, bends }) => [
      ...[precise(rate), precise(achievedPerS), precise(p50), precise(p99), String(failures)],
      bends ?? "holds",
    ]);
    table(terminal, ["rate/s", "done/s", "p50 ms", "p99 ms", "failed", ""], steps);
    terminal.line();
  }
  for (const line of sendingLines(result)) terminal.line(line);
  for (const [code, count] of Object.entries(errorsOf(result))) terminal.warn(`${count} failed with ${code}: ${result.messages[code] ?? ""}`);
  for (const line of problemsOf(result)) terminal.bad(line);
  if (result.limit) terminal.good(`The deployment ${result.limit.why}`);
}

function table(terminal: Terminal, headings: readonly string[], rows: readonly (readonly string[])[], leftColumns?: number): void {
  alignColumns([headings, ...rows], leftColumns).forEach((line, index) => terminal.line(index === 0 ? terminal.paint("bold", line) : line));
}

/** One row of the table; a time within an action stands below it, indented. */
export function cellsOf({ name, isMark, count, failures, refused, bytes, ms }: RowResult, { sendings, rows }: Result): string[] {
  const parent = rows.find((row) => !row.isMark && name.startsWith(`${row.name}, `));
  const title = isMark ? `  ${name.slice((parent?.name.length ?? 0) + 2)}` : name;
  const seconds = sendings.reduce((sum, { durationS }) => sum + durationS, 0);
  const succeeded = count - failures;
  const time = (value: number, least = 1): string => (succeeded >= least ? precise(value) : "-");
  // Rounded down, so that 100 % means all.
  const success = count > 0 ? `${Math.floor((succeeded / count) * 1_000) / 10} %` : "-";
  const perS = seconds > 0 ? bytes / bytesPerMB / seconds : 0;
  const rate = perS >= leastShown ? precise(perS) : "";
  return [
    title,
    String(count),
    success,
    String(failures),
    String(refused),
    time(ms.p50),
    time(ms.p90),
    time(ms.p95),
    time(ms.p99, p99CountMin),
    time(ms.max),
    rate,
  ];
}

/** What was sent, and whether in time. */
export function sendingLines({ sendings, generator, limit, rows }: Result): string[] {
  const total = (pick: (sending: Result["sendings"][number]) => number): number => sendings.reduce((sum, one) => sum + pick(one), 0);
  const late = total((one) => one.late);
  const lateMsMax = Math.max(0, ...sendings.map((one) => one.lateMsMax));
  const lateText = late > 0 ? `${late} more than 10 ms late (${Math.round(lateMsMax)} ms at most)` : "all in time";
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  return [
    `${total((one) => one.sent)} of ${total((one) => one.scheduled)} arrivals sent, ${lateText}${bytes > 0 ? `, ${bytesText(bytes)} moved` : ""}.`,
    ...(limit
      ? []
      : sendings.map(
          ({ name, achievedPerS, rate, inFlightMax }) =>
            `${name}: ${precise(achievedPerS)}/s done${rate ? ` of ${rate}/s` : ""}, ${inFlightMax} under way at most.`,
        )),
    `The generator was busy for ${Math.round(generator.busy * 100)} % of the time and used ${precise(generator.cpus)} CPUs; its event loop was delayed by ${precise(generator.loopDelayMsP99)} ms (p99).`,
  ];
}

/** All failures by code. */
export function errorsOf({ rows }: Result): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { errors } of rows) for (const [code, count] of Object.entries(errors)) all[code] = (all[code] ?? 0) + count;
  return all;
}

/** What makes the result doubtful, or needs somebody to act. */
export function problemsOf({ generator, leftOver, isComplete, messages }: Result): string[] {
  return [
    ...generator.limits.map((reason) => `The generator may have been the limit: ${reason}.`),
    ...(isComplete ? [] : [`The load ended early${messages.failed ? `: ${messages.failed}` : ""}. What was measured until then is above.`]),
    ...leftOver.map((what) => `Left over: ${what}`),
  ];
}
