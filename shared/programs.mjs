/**
 * The product's location on disk and its programs: everything that runs in its own process or thread. `npm run build` bundles
 * each into one file. Plain JavaScript for Node 18 and later, because builds use it before anything is installed.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Paths of their sources, relative to the folder of package.json. */
export const programs = /** @type {const} */ ([
  "gateway/main.ts",
  "shared/cli/main.ts",
  "worker/main.ts",
  "worker/runtime/filesystem/short-names.ts",
  "worker/store/check.ts",
  "worker/store/copy.ts",
  "worker/usage/holdings-thread.ts",
  "systemd/backup/backups.ts",
  "systemd/cluster/main.ts",
  "systemd/fleet/joiners.ts",
  "systemd/helper/main.ts",
  "systemd/supervisor/main.ts",
  "systemd/units/install.ts",
  "systemd/units/setup.ts",
]);

/** @typedef {(typeof programs)[number]} Program */

const here = fileURLToPath(import.meta.url);

/** The folder of package.json. This file, and everything built from it, is in a folder directly below. */
export const appDir = dirname(dirname(here));

/** The folder of all build output, without subfolders. */
export const buildDir = join(appDir, "build");

/** The file name in `build/` for a source. @param {Program} source */
export const builtName = (source) => source.replaceAll("/", "-").replace(/\.ts$/, ".js");

/** The file that Node.js runs for a program: the built one in a build, else its source. @param {Program} source */
export function programFile(source) {
  return here.startsWith(buildDir) ? join(buildDir, builtName(source)) : join(appDir, source);
}

/** Packages that bundles leave out: some contain compiled code; the others are optional imports of packages that work without them. */
export const external = ["koffi", "lmdb", "uWebSockets.js", "bufferutil", "utf-8-validate", "bare-fs"];

/** The first lines of a bundle: CommonJS packages load modules of Node.js through `require`. */
export const requireBanner = 'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);';
