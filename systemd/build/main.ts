/** Makes `build/`. Its arguments are the stamp file, which is written last, and its content: the fingerprint of the sources. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildPages } from "../../gateway/pages.ts";
import { buildDir } from "../../shared/programs.mjs";
import { replace } from "../../shared/util/made.mjs";
import { bundlePrograms } from "./programs.ts";

process.umask(0o022); // the service users must be able to read it
const [stamp = "", sources = ""] = process.argv.slice(2);
rmSync(stamp, { force: true });
const [code, pages] = await Promise.all([bundlePrograms(), buildPages()]);
const files = new Map([...code, ...[...pages].map(([name, text]) => [join("pages", name), text] as const)]);
for (const [name, text] of files) replace(join(buildDir, name), text);
removeOthers();
replace(stamp, sources);

/** Removes the files of earlier builds. */
function removeOthers(): void {
  for (const entry of readdirSync(buildDir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isDirectory() && !files.has(path.slice(buildDir.length + 1))) rmSync(path);
  }
}
