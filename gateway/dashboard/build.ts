/** Builds the files of the dashboard. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { bundle, type Entry } from "./bundle.ts";
import { assetsFolder, fileNames } from "./files.ts";

export interface BuiltDashboard {
  readonly files: ReadonlyMap<string, string>;
  /** Replaces the source names of entry points in HTML with their built files. @throws {Error} for an unknown entry point. */
  link(html: string): string;
}

/** Builds the single HTML page with everything it loads. */
export async function buildDashboard(dir: string, entryPoints: readonly string[]): Promise<BuiltDashboard> {
  const read = (name: string): Promise<string> => readFile(join(dir, name), "utf8");
  const [page, icon] = await Promise.all([read(fileNames.page), read(fileNames.favicon)]);
  const { files, entries } = await bundle(dir, entryPoints);
  const link = (html: string): string => linked(html, entries);
  const assets = [...files].map(([name, text]) => [join(assetsFolder, name), text] as const);
  return { files: new Map([[fileNames.page, link(page)], [fileNames.favicon, icon], ...assets]), link };
}

/** Links the built entry points, and preloads the modules that a script imports. */
function linked(html: string, entries: ReadonlyMap<string, Entry>): string {
  return html.replaceAll(/<[^<>]+"\/assets\/([^"]+)"[^<>]*>/g, (tag: string, source: string) => {
    const entry = entries.get(source);
    if (!entry) throw new Error(`the pages have no entry point ${source}`);
    const preloads = entry.imports.map((name) => `<link rel="modulepreload" href="/assets/${name}" />`);
    return [...preloads, tag.replace(source, entry.name)].join("");
  });
}
