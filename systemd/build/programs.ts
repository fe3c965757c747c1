/** Bundles the programs with the code they use from packages, so that a process loads a few files instead of hundreds. */
import { basename } from "node:path";
import { build } from "esbuild";
import { appDir, builtName, programs } from "../../shared/programs.mjs";

/** Packages that are not bundled: some contain compiled code; the others are optional imports of packages that work without them. */
const external = ["koffi", "lmdb", "uWebSockets.js", "bufferutil", "utf-8-validate", "bare-fs"];

/** CommonJS packages load modules of Node.js through `require`. */
const banner = 'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);';

/** The output files, by name. Code that several programs share, or that one loads later, gets a file of its own. */
export async function bundlePrograms(): Promise<Map<string, string>> {
  const { outputFiles } = await build({
    entryPoints: programs.map((source) => ({ in: source, out: builtName(source).replace(/\.js$/, "") })),
    absWorkingDir: appDir,
    outdir: "build",
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node22",
    external,
    banner: { js: banner },
    legalComments: "none",
    logLevel: "warning",
  });
  return new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
}
