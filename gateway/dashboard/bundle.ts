/** Bundles the sources of the pages and their packages into a few files. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Metafile, type Plugin } from "esbuild";

/** The pages' content security policy allows styles from files only. This module replaces the style elements that xterm.js creates. */
const stylesModule = fileURLToPath(new URL("app/terminal/made-up-styles.ts", import.meta.url));

/**
 * xterm.js creates style elements and style attributes at run time, which would need `style-src 'unsafe-inline'`. The CSSOM
 * can express the same and is allowed by the policy, so the build rewrites these few places instead of weakening the
 * policy. A version with other places fails the build.
 */
const changes: readonly { readonly from: RegExp; readonly to: string; readonly times: number }[] = [
  { from: /[\w.]+\.createElement\("style"\)/g, to: "madeUpStyle()", times: 3 },
  { from: /(\w+)\.setAttribute\("style",/g, to: "$1.style.cssText=(", times: 1 },
];

const strictStyles: Plugin = {
  name: "strict-styles",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]@xterm[\\/]xterm[\\/]lib[\\/]xterm\.mjs$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const { from, to, times } of changes) {
        const found = contents.match(from)?.length ?? 0;
        if (found !== times) throw new Error(`${path} has ${found} places like ${from}, not ${times}: see what it does with styles now`);
        contents = contents.replaceAll(from, to);
      }
      return { contents: `import { madeUpStyle } from ${JSON.stringify(stylesModule)};\n${contents}`, loader: "js" };
    });
  },
};

export interface Bundle {
  /** By name, which includes a hash of the content: `main-OQXHDXFS.js`. */
  readonly files: ReadonlyMap<string, string>;
  /** The built entry points, by source path. */
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Entry {
  readonly name: string;
  /** Names of the files that it imports statically. */
  readonly imports: readonly string[];
}

/**
 * Bundles scripts and style sheets with everything they import. Modules that several scripts share, or that are imported
 * dynamically, become separate files. Functions keep their names, so that stack traces stay readable.
 *
 * @param entryPoints paths in `dir`
 * @throws {Error} when a source is missing or invalid.
 */
export async function bundle(dir: string, entryPoints: readonly string[]): Promise<Bundle> {
  const options = { bundle: true, splitting: true, write: false, metafile: true, absWorkingDir: dir, logLevel: "silent" } as const;
  const names = { outdir: ".", entryNames: "[name]-[hash]", chunkNames: "[name]-[hash]" };
  const form = { format: "esm", platform: "browser", target: "es2022", charset: "utf8", legalComments: "inline" } as const;
  const size = { minifyWhitespace: true, minifySyntax: true };
  const { outputFiles, metafile } = await build({ entryPoints: [...entryPoints], ...options, ...names, ...form, ...size, plugins: [strictStyles] });
  return { files: new Map(outputFiles.map(({ path, text }) => [basename(path), text])), entries: entriesOf(metafile) };
}

function entriesOf({ outputs }: Metafile): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const [name, { entryPoint, imports }] of Object.entries(outputs)) {
    const needed = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => path);
    if (entryPoint) entries.set(entryPoint, { name, imports: needed });
  }
  return entries;
}
