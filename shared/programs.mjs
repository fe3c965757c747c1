/**
 * Where the product lies, and its programs: what runs in a process or a thread of its own. `npm run build` makes one file of
 * each. Plain JavaScript for Node 18 and later, because builds ask before anything is installed.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** By their sources, below the folder of package.json. */
export const programs = /** @type {const} */ ([
  "gateway/main.ts",
  "shared/cli/main.ts",
  "worker/main.ts",
  "worker/runtime/filesystem/short-names.ts",
  "worker/store/check.ts",
  "worker/usage/holdings-thread.ts",
  "systemd/supervisor/main.ts",
]);

/** @typedef {(typeof programs)[number]} Program */

const here = fileURLToPath(import.meta.url);

/** The folder of package.json. This file is right below it in a folder, and so is all that is built of it. */
export const appDir = dirname(dirname(here));

/** What is built, all files beside each other. */
export const buildDir = join(appDir, "build");

/** The name in `build/` of what becomes of a source. @param {Program} source */
export const builtName = (source) => source.replaceAll("/", "-").replace(/\.ts$/, ".js");

/** The file of a program as Node.js runs it: built where this is built, else its source. @param {Program} source */
export function programFile(source) {
  return here.startsWith(buildDir) ? join(buildDir, builtName(source)) : join(appDir, source);
}
