#!/usr/bin/env node
/**
 * `npm run admin` and `sandgate-admin`: hands over to admin/main.ts under the Node.js that comes with the packages.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { join } from "node:path";
import { buildDir, builtName } from "../shared/programs.mjs";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled, runForwarding } from "./install.mjs";

try {
  const node = await ensureInstalled();
  await ensureBuilt(node);
  // File names on the command line count from where the person is, not from here.
  const args = [join(buildDir, builtName("systemd/admin/main.ts")), ...process.argv.slice(2)];
  const { code, signal } = await runForwarding(node, args, { cwd: callersFolder(), stdio: "inherit" });
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
