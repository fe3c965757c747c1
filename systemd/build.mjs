/**
 * Makes `build/`, which the parts run from, and remakes it when the sources have changed.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { appDir, buildDir } from "../shared/programs.mjs";
import { fingerprint, says } from "../shared/util/made.mjs";
import { ensureInstalled, runForwarding } from "./install.mjs";

const sources = ["gateway", "worker", "shared", "systemd", "package.json", "package-lock.json", "tsconfig.json"];
const stamp = join(buildDir, "sources");

/**
 * Makes sure that `build/` matches the current sources.
 *
 * @param {string} node the Node.js that runs the product
 */
export async function ensureBuilt(node) {
  const wanted = fingerprint(appDir, sources);
  if (says(stamp, wanted)) return;
  console.error("Building…");
  const { code } = await runForwarding(node, ["systemd/build/main.ts", stamp, wanted], { stdio: ["ignore", 2, 2] });
  if (code !== 0) throw new Error("the build failed; its messages are above");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await ensureBuilt(await ensureInstalled());
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
