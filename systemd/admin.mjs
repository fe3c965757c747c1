#!/usr/bin/env node
/**
 * `npm run admin` and `sandgate-admin`: hands over to admin/main.ts under the Node.js that comes with the packages.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { appDir, ensureInstalled, runForwarding } from "./install.mjs";

try {
  const node = await ensureInstalled();
  // By its full path, because file names on the command line count from where the person is, not from here.
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const args = ["--import", tsx, join(appDir, "systemd/admin/main.ts"), ...process.argv.slice(2)];
  const env = { ...process.env, TSX_TSCONFIG_PATH: join(appDir, "tsconfig.json") };
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
