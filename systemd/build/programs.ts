/** The programs as JavaScript, with those parts of packages that they use: a process loads a few files instead of hundreds. */
import { basename } from "node:path";
import { build } from "esbuild";
import { appDir, builtName, programs } from "../../shared/programs.mjs";

/** What comes with compiled code stays a package; the others are asked for in vain by packages that can do without. */
const external = ["koffi", "lmdb", "uWebSockets.js", "bufferutil", "utf-8-validate", "bare-fs"];

/** Packages of the older kind ask for modules of Node.js by a function. */
const banner = 'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);';

/** The files that become of them, by their names. What several programs need, or one of them not at once, is a file of its own. */
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
