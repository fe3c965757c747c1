/** The files of the web pages: read, stripped of their types and kept in memory when the gateway starts. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stop, transform } from "esbuild";
import { bundle } from "./bundle.ts";

export interface Asset {
  readonly contentType: string;
  readonly body: string;
  /** In the quotes that the header wants. */
  readonly etag: string;
}

export interface Dashboard {
  /** The one HTML page; what it shows depends on its path. */
  readonly page: Asset;
  /** By the path after `/assets/`. */
  readonly assets: ReadonlyMap<string, Asset>;
}

const pageName = "index.html";
/** Files in this folder take in what they import, from outside of the pages too. */
const bundledFolder = "bundled";
const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".ts": "text/javascript; charset=utf-8",
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
  "cache-control": "no-cache",
};

/** @throws {Error} when the folder has no page, or a file that is not valid TypeScript. */
export async function loadDashboard(dir = fileURLToPath(new URL("app/", import.meta.url))): Promise<Dashboard> {
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.isFile() && extname(file.name) in contentTypes).map((file) => join(file.parentPath, file.name));
  const assets = new Map<string, Asset>();
  await Promise.all(paths.map(async (path) => assets.set(relative(dir, path), await loadAsset(path, dirname(relative(dir, path)) === bundledFolder))));
  await stop(); // esbuild's own process would live as long as this one.
  const page = assets.get(pageName);
  if (!page) throw new Error(`${dir} has no ${pageName}`);
  assets.delete(pageName);
  return { page, assets };
}

async function loadAsset(path: string, isBundle: boolean): Promise<Asset> {
  const body = isBundle ? await bundle(path) : await loadText(path);
  return assetOf(contentTypes[extname(path)] as string, body);
}

async function loadText(path: string): Promise<string> {
  const text = await readFile(path, "utf8");
  return extname(path) === ".ts" ? stripTypes(text, path) : text;
}

/** A text as it is served. */
export function assetOf(contentType: string, body: string): Asset {
  const hash = createHash("sha256").update(body).digest("base64url");
  return { contentType, body, etag: `"${hash.slice(0, 27)}"` };
}

async function stripTypes(text: string, sourcefile: string): Promise<string> {
  const options = { tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } } };
  const { code } = await transform(text, { loader: "ts", target: "es2022", sourcefile, charset: "utf8", ...options });
  return code;
}
