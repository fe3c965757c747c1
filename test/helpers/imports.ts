/** Which files import which, types included. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Statements and expressions that import, in the one form that the formatter leaves. */
const forms = /^(?:import|export) (?:[^;"]*? from )?"([^"]+)"|\bimport\("([^"]+)"\)/gm;

/** The direct dependencies of each node. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** The sources below some folders by their path in the repository, with what each imports: paths, or names of packages. */
export function importsBelow(folders: readonly string[]): Graph {
  const files = globSync(`{${folders.join(",")}}/**/*.{ts,mts,mjs}`);
  return new Map(
    files.map((file) => {
      const names = [...readFileSync(file, "utf8").matchAll(forms)].map(([, name = "", later]) => later ?? name);
      return [file, new Set(names.map((name) => (name.startsWith(".") ? join(dirname(file), name) : name)))];
    }),
  );
}

/** The same between groups of files; `groupOf` says undefined for files that do not matter. */
export function between(graph: Graph, groupOf: (file: string) => string | undefined): Graph {
  const groups = new Map<string, Set<string>>();
  for (const [file, imported] of graph) {
    const from = groupOf(file);
    if (from === undefined) continue;
    const needed = groups.get(from) ?? new Set();
    groups.set(from, needed);
    for (const other of imported) {
      const to = groupOf(other);
      if (to !== undefined && to !== from) needed.add(to);
    }
  }
  return groups;
}

/** Import circles as paths, one for each node that closes a circle. */
export function circlesIn(graph: Graph): string[][] {
  const circles: string[][] = [];
  const path: string[] = [];
  const done = new Set<string>();
  const visit = (node: string): void => {
    const at = path.indexOf(node);
    if (at >= 0) return void circles.push([...path.slice(at), node]);
    if (done.has(node)) return;
    path.push(node);
    for (const next of graph.get(node) ?? []) visit(next);
    path.pop();
    done.add(node);
  };
  for (const node of graph.keys()) visit(node);
  return circles;
}
