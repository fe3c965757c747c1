/** Files of the pages that bring packages along: each becomes one file, with all that it imports. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

/** Under the pages' policy no style works that did not come as a file. This module makes those that xterm.js makes up. */
const stylesModule = fileURLToPath(new URL("app/terminal/made-up-styles.ts", import.meta.url));

/**
 * xterm.js writes style elements and style attributes while it runs, which would need `style-src 'unsafe-inline'`. What
 * it means by them can be said through the CSSOM as well, which the policy lets through: so these few places are
 * changed, and the policy stays as it is. A version that has others does not get past the start.
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

/** A script or style sheet with everything that it imports. @throws {Error} when something is missing or not valid. */
export async function bundle(path: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    charset: "utf8",
    minify: true,
    legalComments: "inline",
    logLevel: "silent",
    plugins: [strictStyles],
  });
  const [file] = outputFiles;
  if (!file || outputFiles.length > 1) throw new Error(`${path} does not make one file`);
  return file.text;
}
