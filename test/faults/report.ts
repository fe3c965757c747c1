/** What a run prints: a line for each fault, and what was found with the calls that it is about. */
import assert from "node:assert/strict";
import { alignColumns } from "../../shared/util/columns.ts";
import type { History } from "./history.ts";
import { plan } from "./plan.ts";

/** How to have the same faults and calls again. Which call meets which moment of a fault is up to the machine. */
const replay = (): string => `npm run test:faults -- --seed ${plan.seed}${plan.rounds === undefined ? "" : ` --rounds ${plan.rounds}`}`;

/** Prints the table. */
export function printTable(title: string, history: History): void {
  const rows = history.table().map(({ fault, times, answers, verdict }) => [fault, String(times), answers, verdict]);
  const lines = alignColumns([["fault", "times", "answers to clients meanwhile", "verdict"], ...rows]);
  console.log(`${title}, seed ${plan.seed}: ${history.calls} calls\n${lines.map((line) => `  ${line}`).join("\n")}`);
}

/** @throws {AssertionError} with the history of everything that is not as clients were told. */
export function assertNoFindings(history: History): void {
  if (history.findings.length === 0) return;
  const subjects = [...new Set(history.findings.map(({ subject }) => subject))];
  const parts = subjects.map((subject) => {
    const found = history.findings.filter((finding) => finding.subject === subject).map(({ what }) => `  ${subject}: ${what}`);
    return [...found, history.about(subject)].join("\n");
  });
  assert.fail(`${history.findings.length} findings; again by: ${replay()}\n${parts.join("\n")}`);
}
