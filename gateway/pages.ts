/** The web pages as files, with the reference of the API among them: made once, by the build. */
import { fileURLToPath } from "node:url";
import { routes } from "./api/routes.ts";
import { buildDashboard } from "./dashboard/build.ts";
import { fileNames } from "./dashboard/files.ts";
import { makeReference } from "./docs/reference.ts";

const sources = fileURLToPath(new URL("dashboard/app", import.meta.url));
const allEntryPoints = ["main.ts", "main.css", "docs.ts", "docs.css", "theme-boot.ts"];

/** All files by their names below the folder of the pages. @throws {Error} when one is missing or not valid. */
export async function buildPages(): Promise<Map<string, string>> {
  const { files, link } = await buildDashboard(sources, allEntryPoints);
  const { document, page } = await makeReference(routes, { link });
  return new Map([...files, [fileNames.document, document.body], [fileNames.reference, page.body]]);
}
