/**
 * Bundles the wanted test files with the code that they use, so that each process of tests loads a few files instead of hundreds,
 * and starts the run. Arguments are parts of file names; without any, all run but most of those on machines of their own and those
 * that cause faults for minutes. For the latter are `--seed` and `--rounds`. `--durations` notes how long files took, by which
 * later runs order them. `--in` is a folder, outside of which nothing runs, so that a script for a kind of tests takes names as well.
 */
import { randomInt } from "node:crypto";
import { globSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build, stop } from "esbuild";
import { tsImport } from "tsx/esm/api";
import { appDir, external, requireBanner } from "../shared/programs.mjs";

const options = { seed: { type: "string" }, rounds: { type: "string" }, durations: { type: "boolean", default: false }, in: { type: "string" } };
const { positionals: wanted, values } = parseArgs({ allowPositionals: true, options });
process.env.TEST_FAULTS = JSON.stringify({ seed: numberOf("seed") ?? randomInt(1_000_000), rounds: numberOf("rounds") });
const usual = /^test\/(unit|e2e|host\/(services|memory|move))\b/;
const isWanted = (file) => {
  if (wanted.length === 0) return values.in !== undefined || usual.test(file);
  return wanted.some((part) => file.includes(part));
};
const sources = globSync("test/{unit,e2e,host,vm,faults}/**/*.test.ts")
  .filter((file) => file.startsWith(`test/${values.in ?? ""}`) && isWanted(file))
  .sort();
if (sources.length === 0) throw new Error(`no test file matches ${wanted.join(", ")}`);

const folder = join(tmpdir(), "tests");
mkdirSync(folder);
// For the packages that are not bundled.
symlinkSync(join(appDir, "node_modules"), join(folder, "node_modules"));
await build({
  entryPoints: sources,
  absWorkingDir: appDir,
  outbase: appDir,
  outdir: folder,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22",
  sourcemap: "linked",
  sourcesContent: false,
  chunkNames: "chunks/[hash]",
  external: [...external, "esbuild", "playwright-core", "@lydell/node-pty", "@seriousme/openapi-schema-validator"],
  banner: { js: requireBanner },
  logLevel: "warning",
  define: { "import.meta.url": "sourceUrl", "import.meta.dirname": "sourceFolder" },
  plugins: [
    { name: "location", setup: ({ onLoad }) => void onLoad({ filter: /\/(?:gateway|worker|shared|systemd|bench|test)\/.*\.m?[jt]s$/ }, withOwnLocation) },
  ],
});
await stop();

const { runTests } = await tsImport("./run.ts", import.meta.url);
await runTests(folder, sources, { areNoted: values.durations, areNamed: wanted.length > 0 || values.in !== undefined });

function numberOf(option) {
  const { [option]: text } = values;
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${option} takes a whole number`);
  return Number(text);
}

/** Sources find other files from where they stand, not from where their bundle does. */
function withOwnLocation({ path }) {
  const text = readFileSync(path, "utf8");
  if (!text.includes("import.meta")) return undefined;
  const constants = `const sourceUrl = ${JSON.stringify(pathToFileURL(path).href)}, sourceFolder = ${JSON.stringify(dirname(path))};`;
  return { contents: constants + text, loader: path.endsWith(".ts") ? "ts" : "js" };
}
