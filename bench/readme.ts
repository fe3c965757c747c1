/** The section of the README with the figures of one run, so that nobody copies them by hand. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { appDir } from "../shared/programs.mjs";
import { computerText } from "./computer.ts";
import { cells, certaintyOf, headings, leftAligned, type Report } from "./report.ts";

const title = "## Performance";
/** The section before which a new one is put. */
const next = "## Load";

/** Writes the figures into the README, in place of those of an earlier run. */
export function writeReadme(report: Report): string {
  const file = join(appDir, "README.md");
  writeFileSync(file, withSection(readFileSync(file, "utf8"), sectionOf(report)));
  return file;
}

/** @throws {Error} if there is no place for the section */
export function withSection(readme: string, section: string): string {
  const begin = readme.indexOf(`\n${title}\n`);
  const end = begin < 0 ? -1 : readme.indexOf("\n## ", begin + title.length);
  const at = begin < 0 ? readme.indexOf(`\n${next}\n`) : begin;
  if (at < 0) throw new Error(`the README has neither a section "${title}" nor one "${next}"`);
  return `${readme.slice(0, at)}\n${section}${readme.slice(begin < 0 ? at : end < 0 ? readme.length : end)}`;
}

/** In Markdown, from its heading to an empty line. */
export function sectionOf({ machine, rows, targets, startedAt, durationS, seed }: Report): string {
  const line = (texts: readonly string[]): string => `| ${texts.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = headings.map((_, index) => (index < leftAligned ? "---" : "---:"));
  const table = rows.map((row, index) => line(cells(row, rows, rows[index - 1]?.task !== row.task)));
  const met = targets.filter((target) => target.met).length;
  const missed = targets.filter((target) => !target.met).map(({ target, measured }) => `- Not met: ${target}: ${measured}`);
  return [
    title,
    "",
    `Measured by \`npm run bench\` on ${startedAt.slice(0, 10)} in ${Math.round(durationS)} s: ${computerText(machine)}; podman ${machine.podman}, ${machine.runtime}, Node.js ${machine.node}.`,
    `Contenders take turns, in another order each round (\`--seed ${seed}\`), until the ratio of their medians is known within a tenth, 95 % sure, or their time is over; a wider range stands in parentheses. ${certaintyOf(rows)}`,
    'Rows "after somebody else" are of the first call after another contender\'s turn, those above them of the calls that follow it in a row.',
    "",
    line(headings),
    `|${rule.join("|")}|`,
    ...table,
    "",
    `${met} of ${targets.length} targets are met.`,
    ...missed,
    "",
  ].join("\n");
}
