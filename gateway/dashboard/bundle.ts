/** Few files instead of the many that the pages are written in, with what they bring along from packages. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Metafile, type Plugin } from "esbuild";

/** Under the pages' policy no style works that did not come as a file. This module makes those that xterm.js makes up. */
const stylesModule = fileURLToPath(new URL("app/terminal/made-up-styles.ts", import.meta.url));

/**
 * xterm.js writes style elements and style attributes while it runs, which would need `style-src 'unsafe-inline'`. What
 * it means by them can be said through the CSSOM as well, which the policy lets through: so these few places are
 * changed, and the policy stays as it is. A version that has others does not get past the build.
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
  /** By their names, which change with what is in them: `main-OQXHDXFS.js`. */
  readonly files: ReadonlyMap<string, string>;
  /** What became of the entry points, by their paths. */
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Entry {
  readonly name: string;
  /** Names of the files that it cannot start without. */
  readonly imports: readonly string[];
}

/**
 * Scripts and style sheets with everything that they import. What several scripts need, and what one of them imports
 * only while it runs, are files of their own. Functions keep their names, so that one can read where an error is from.
 *
 * @param entryPoints paths in `dir`
 * @throws {Error} when something is missing or not valid.
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
