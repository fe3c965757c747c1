#!/usr/bin/env node
/**
 * `npm run admin` and `sandgate-admin`, and `sandgate admin` of a clone: hands over to the command line under the Node.js that
 * comes with the packages, as it was built beside the parts: root has checked who can change that.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { join, resolve } from "node:path";
import { appDir, buildDir, builtName } from "../shared/programs.mjs";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled, runForwarding } from "./install.mjs";

try {
  const node = await ensureInstalled();
  await ensureBuilt(node);
  const args = [join(buildDir, builtName("shared/cli/main.ts")), "admin", ...process.argv.slice(2)];
  // File names on the command line count from where the person is, not from here; those of settings from here.
  const { SANDGATE_DATA_DIR: data } = process.env;
  const env = { ...process.env, ...(data ? { SANDGATE_DATA_DIR: resolve(appDir, data) } : {}) };
  const { code, signal } = await runForwarding(node, args, { cwd: callersFolder(), env, stdio: "inherit" });
  if (signal) process.kill(process.pid, signal);
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

/** `npm run` changes into the folder of package.json and says where the person was. */
function callersFolder() {
  const { npm_lifecycle_event: script, INIT_CWD: before } = process.env;
  return (script === "admin" && before) || process.cwd();
}
