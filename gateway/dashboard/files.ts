/** The files of the web pages: made and kept in memory when the gateway starts. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, type Entry } from "./bundle.ts";

export interface Asset {
  readonly contentType: string;
  readonly body: string;
  /** In the quotes that the header wants. */
  readonly etag: string;
}

export interface Dashboard {
  /** The one HTML page; what it shows depends on its path. */
  readonly page: Asset;
  readonly favicon: Asset;
  /** By the path after `/assets/`. Each path stands for the same content for ever. */
  readonly assets: ReadonlyMap<string, Asset>;
  /** Makes HTML that loads entry points by their sources' names load what became of them. @throws {Error} when one is not known. */
  link(html: string): string;
}

const appDir = fileURLToPath(new URL("app", import.meta.url));
const allEntryPoints = ["main.ts", "main.css", "docs.ts", "docs.css", "theme-boot.ts"];
const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
};

/**
 * Headers of the page and of its assets. Nothing is loaded from, sent to or framed by another origin, and no script or
 * style works that did not come from here as a file: markup that got into a page would stay inert.
 */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
};

/** Headers of what is the same for everybody, and asked for again each time. */
export const publicHeaders: typeof pageHeaders = { ...pageHeaders, "cache-control": "no-cache" };

/** Headers of files that never change under their names. */
export const assetHeaders: typeof pageHeaders = { ...pageHeaders, "cache-control": "public, max-age=31536000, immutable" };

/** @throws {Error} when a file is missing or not valid. */
export async function loadDashboard(dir = appDir, entryPoints: readonly string[] = allEntryPoints): Promise<Dashboard> {
  const read = (name: string): Promise<string> => readFile(join(dir, name), "utf8");
  const [page, icon] = await Promise.all([read("index.html"), read("favicon.svg")]);
  const { files, entries } = await bundle(dir, entryPoints);
  const link = (html: string): string => linked(html, entries);
  const assets = new Map([...files].map(([name, text]) => [name, fileOf(name, text)]));
  return { page: fileOf("index.html", link(page)), favicon: fileOf("favicon.svg", icon), assets, link };
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

function fileOf(name: string, text: string): Asset {
  return assetOf(contentTypes[extname(name)] as string, text);
}

/** A text as it is served. */
export function assetOf(contentType: string, body: string): Asset {
  const hash = createHash("sha256").update(body).digest("base64url");
  return { contentType, body, etag: `"${hash.slice(0, 27)}"` };
}
