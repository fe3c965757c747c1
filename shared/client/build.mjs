/**
 * `npm run build`: creates a package in `dist/` with the client library and the command line as plain JavaScript for Node 18
 * and later and for browsers. `ws` is its only dependency. The command line rebuilds itself when it is run from sources that
 * have changed. Plain JavaScript, because it runs before anything is installed.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { appDir } from "../programs.mjs";
import { fingerprint, replace, says } from "../util/made.mjs";

const dist = join(appDir, "dist");
const stamp = join(dist, ".sources");
const sources = [
  ...["shared/client", "shared/cli", "shared/stream/session", "shared/util"],
  ...["package.json", "shared/abort.ts", "shared/config.ts", "shared/errors.ts", "shared/setting-kinds.ts", "shared/settings.ts", "shared/waiting.ts"],
];

/** The command line, bundled into one file. */
export const commandFile = join(dist, "cli/main.js");

/** Whether `dist/` was built from the current sources. */
export function isBuilt() {
  return says(stamp, fingerprint(appDir, sources));
}

/** Builds the JavaScript files. Concurrent builds are safe, because each file is replaced atomically. */
export async function build() {
  const made = fingerprint(appDir, sources);
  const { build: bundle } = await import("esbuild");
  const common = { bundle: true, format: "esm", target: ["node18", "es2022"], charset: "utf8", legalComments: "none", absWorkingDir: appDir, write: false };
  const results = await Promise.all([
    bundle({ ...common, entryPoints: ["shared/client/index.ts"], outfile: "dist/client/index.js", platform: "node", external: ["ws"] }),
    bundle({ ...common, entryPoints: ["shared/client/browser.ts"], outfile: "dist/client/browser.js", platform: "browser", target: "es2022" }),
    bundle({
      ...common,
      entryPoints: ["shared/cli/main.ts"],
      outfile: "dist/cli/main.js",
      platform: "node",
      define: { SANDGATE_VERSION: JSON.stringify(manifest().version) },
      // Bundled CommonJS packages need `require`.
      banner: { js: '#!/usr/bin/env node\nimport { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);' },
      external: ["bufferutil", "utf-8-validate", "bare-fs"],
    }),
  ]);
  for (const { path, contents } of results.flatMap(({ outputFiles }) => outputFiles)) replace(path, contents, path === commandFile ? 0o755 : 0o644);
  replace(join(dist, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
  replace(stamp, made);
}

/** Builds the type declarations; those of the schemas are generated. Needs the development packages. */
export async function declare() {
  const types = join(dist, "client/types");
  const own = join(dist, `.types-${randomBytes(4).toString("hex")}`);
  const tsc = join(appDir, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", "shared/client", "--outDir", own], { cwd: appDir, encoding: "utf8" });
  if (status !== 0) throw new Error(stdout);
  const wanted = new Set();
  for (const name of readdirSync(own, { recursive: true })) {
    if (name.startsWith("schemas") || !name.endsWith(".d.ts")) continue;
    const text = readFileSync(join(own, name), "utf8");
    for (const [, names] of text.matchAll(/\{([^{}]*)\} from "[./]+\/schemas\/.*"/g))
      for (const [name] of names.matchAll(/\w+(?= as|,|\s*$)/g)) wanted.add(name);
    replace(join(types, name), text.replaceAll(/(from "[./]+\/schemas)\/[^"]*"/g, '$1.js"').replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"'));
  }
  rmSync(own, { recursive: true });
  const { tsImport } = await import("tsx/esm/api");
  const { declarations } = await tsImport("./declarations.ts", import.meta.url);
  replace(join(types, "schemas.d.ts"), await declarations([...wanted]));
}

/** The package.json of `dist/`. */
function manifest() {
  const { name, version, description, dependencies, engines, exports } = JSON.parse(readFileSync(join(appDir, "package.json"), "utf8"));
  const local = JSON.parse(JSON.stringify(exports).replaceAll("./dist/", "./"));
  return {
    name,
    version,
    description: `${description}: client library and command line`,
    type: "module",
    bin: { sandgate: "cli/main.js" },
    exports: local,
    dependencies: { ws: dependencies.ws },
    engines,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await build();
  await declare();
  cpSync(join(appDir, "LICENSE"), join(dist, "LICENSE"));
}
