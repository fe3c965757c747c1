/** In which order the files of tests begin. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";

const file = join(appDir, "test/durations.json");
/** Shorter ones need no entry, and new files count as one of these. */
const notedSecondsMin = 10;

/** Seconds that each of the longest files took, by their paths in the project. */
export type Durations = Readonly<Record<string, number>>;

export const notedDurations = (): Durations => JSON.parse(readFileSync(file, "utf8")) as Durations;

/** Writes down how long files took, in place of what an earlier run has written of them. */
export function noteDurations(measured: ReadonlyMap<string, number>): void {
  const all = new Map([...Object.entries(notedDurations()), ...measured]);
  const long = [...all].filter(([, seconds]) => seconds >= notedSecondsMin).sort(([, one], [, other]) => other - one);
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(long.map(([path, seconds]) => [path, Math.round(seconds)])), undefined, 2)}\n`);
}

/**
 * Files with a browser and those with installations or machines of their own, which take most, at even distances, so that few run beside each
 * other; of each kind the longest first, so that none of them still runs alone at the end.
 */
export function spread(paths: readonly string[], durations: Durations): string[] {
  const browsers = paths.filter((path) => path.includes("e2e/dashboard/"));
  const installations = paths.filter(
    (path) => !browsers.includes(path) && /\b(startStack|CrashRig|MoveRig|Machine)\b/.test(readFileSync(join(appDir, path), "utf8")),
  );
  const others = paths.filter((path) => !browsers.includes(path) && !installations.includes(path));
  const secondsOf = (path: string): number => durations[path] ?? 0;
  const placed = [browsers, installations, others]
    .map((group) => group.toSorted((one, other) => secondsOf(other) - secondsOf(one)))
    .flatMap((group) => group.map((path, index) => ({ path, at: (index + 0.5) / group.length })));
  return placed.sort((one, other) => one.at - other.at).map(({ path }) => path);
}
