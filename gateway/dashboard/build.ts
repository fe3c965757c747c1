/** The web pages as files, with the reference of the API among them: made once, by the build. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { routes } from "../api/routes.ts";
import { makeReference } from "../docs/reference.ts";
import { bundle, type Entry } from "./bundle.ts";
import { assetsFolder, fileNames } from "./files.ts";

const sources = fileURLToPath(new URL("app", import.meta.url));
const allEntryPoints = ["main.ts", "main.css", "docs.ts", "docs.css", "theme-boot.ts"];

/** All files by their names below the folder of the pages. @throws {Error} when one is missing or not valid. */
export async function buildPages(): Promise<Map<string, string>> {
  const { files, link } = await buildDashboard(sources, allEntryPoints);
  const { document, page } = await makeReference(routes, { link });
  return new Map([...files, [fileNames.document, document.body], [fileNames.reference, page.body]]);
}

export interface BuiltDashboard {
  readonly files: ReadonlyMap<string, string>;
  /** Makes HTML that loads entry points by their sources' names load what became of them. @throws {Error} when one is not known. */
  link(html: string): string;
}

/** The one HTML page with all that it loads. */
export async function buildDashboard(dir: string, entryPoints: readonly string[]): Promise<BuiltDashboard> {
  const read = (name: string): Promise<string> => readFile(join(dir, name), "utf8");
  const [page, icon] = await Promise.all([read(fileNames.page), read(fileNames.favicon)]);
  const { files, entries } = await bundle(dir, entryPoints);
  const link = (html: string): string => linked(html, entries);
  const assets = [...files].map(([name, text]) => [join(assetsFolder, name), text] as const);
  return { files: new Map([[fileNames.page, link(page)], [fileNames.favicon, icon], ...assets]), link };
}

/** What a script imports is asked for together with the script. */
function linked(html: string, entries: ReadonlyMap<string, Entry>): string {
  return html.replaceAll(/<[^<>]+"\/assets\/([^"]+)"[^<>]*>/g, (tag: string, source: string) => {
    const entry = entries.get(source);
    if (!entry) throw new Error(`the pages have no entry point ${source}`);
    const preloads = entry.imports.map((name) => `<link rel="modulepreload" href="/assets/${name}" />`);
    return [...preloads, tag.replace(source, entry.name)].join("");
  });
}
