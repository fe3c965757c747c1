#!/usr/bin/env node
/**
 * `npm run admin` and `sandgate-admin`, and `sandgate admin` of a clone: runs the built command line under the Node.js
 * that comes with the packages. Root has checked who can change that build.
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
  // File names on the command line are relative to the caller's directory, those in settings to this one.
  const { SANDGATE_DATA_DIR: data } = process.env;
  const env = { ...process.env, ...(data ? { SANDGATE_DATA_DIR: resolve(appDir, data) } : {}) };
  const { code, signal } = await runForwarding(node, args, { cwd: callersFolder(), env, stdio: "inherit" });
  if (signal) process.kill(process.pid, signal);
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

/** `npm run` changes into the folder of package.json and reports the caller's directory in INIT_CWD. */
function callersFolder() {
  const { npm_lifecycle_event: script, INIT_CWD: before } = process.env;
  return (script === "admin" && before) || process.cwd();
}
