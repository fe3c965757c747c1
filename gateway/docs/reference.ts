/** The reference as it is served: made once, by the build. */
import { readFile } from "node:fs/promises";
import type { BuiltDashboard } from "../dashboard/build.ts";
import { type Asset, assetOf } from "../dashboard/files.ts";
import { buildDocument } from "./document.ts";
import { renderPage } from "./page/page.ts";
import type { RouteFacts } from "./route.ts";

export interface Reference {
  /** openapi.json. */
  readonly document: Asset;
  /** The same as a web page. */
  readonly page: Asset;
}

const packageFile = new URL("../../package.json", import.meta.url);

export async function makeReference(routes: readonly RouteFacts[], { link }: Pick<BuiltDashboard, "link">): Promise<Reference> {
  const { version } = JSON.parse(await readFile(packageFile, "utf8")) as { version: string };
  const document = buildDocument(routes, version);
  return {
    document: assetOf("application/json; charset=utf-8", `${JSON.stringify(document)}\n`),
    page: assetOf("text/html; charset=utf-8", link(renderPage(document, routes))),
  };
}
