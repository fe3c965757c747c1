/** The built files of the web pages, kept in memory. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { buildDir } from "../../shared/programs.mjs";

export interface Asset {
  readonly contentType: string;
  readonly body: string;
  /** Quoted, as the `ETag` header requires. */
  readonly etag: string;
}

export interface Dashboard {
  /** The single HTML page; its content depends on the path. */
  readonly page: Asset;
  readonly favicon: Asset;
  /** The API reference as a web page. */
  readonly reference: Asset;
  /** The API reference as openapi.json. */
  readonly document: Asset;
  /** By the path after `/assets/`. The content of a path never changes. */
  readonly assets: ReadonlyMap<string, Asset>;
}

export const fileNames = { page: "index.html", favicon: "favicon.svg", reference: "docs.html", document: "openapi.json" } as const;
export const assetsFolder = "assets";
const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
};

/**
 * Headers of the page and its assets. Nothing is loaded from, sent to or framed by another origin, and scripts and styles
 * work only as files from here, so that injected markup stays inert.
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

/** Headers of public content that browsers revalidate each time. */
export const publicHeaders: typeof pageHeaders = { ...pageHeaders, "cache-control": "no-cache" };

/** Headers of files whose names change with their content. */
export const assetHeaders: typeof pageHeaders = { ...pageHeaders, "cache-control": "public, max-age=31536000, immutable" };

/** @throws {Error} when a file is missing. */
export async function loadDashboard(dir = join(buildDir, "pages")): Promise<Dashboard> {
  const load = async (...path: string[]): Promise<Asset> => fileOf(path.at(-1) ?? "", await readFile(join(dir, ...path), "utf8"));
  const names = await readdir(join(dir, assetsFolder));
  const [page, favicon, reference, document, ...assets] = await Promise.all([
    load(fileNames.page),
    load(fileNames.favicon),
    load(fileNames.reference),
    load(fileNames.document),
    ...names.map((name) => load(assetsFolder, name)),
  ]);
  return { page, favicon, reference, document, assets: new Map(names.map((name, index) => [name, assets[index] as Asset])) };
}

function fileOf(name: string, text: string): Asset {
  return assetOf(contentTypes[extname(name)] as string, text);
}

/** Prepares a text for serving, with its ETag. */
export function assetOf(contentType: string, body: string): Asset {
  const hash = createHash("sha256").update(body).digest("base64url");
  return { contentType, body, etag: `"${hash.slice(0, 27)}"` };
}
