/** Bundles the programs with the code they use from packages, so that a process loads a few files instead of hundreds. */
import { basename } from "node:path";
import { build } from "esbuild";
import { appDir, builtName, external, programs, requireBanner } from "../../shared/programs.mjs";

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
    banner: { js: requireBanner },
    legalComments: "none",
    logLevel: "warning",
  });
  return new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
}
