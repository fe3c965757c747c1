#!/usr/bin/env node
/**
 * `npx sandgate` in a clone: runs the command line, after building it if its sources have changed.
 * Operator commands go to admin.mjs, because they may run as root.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { pathToFileURL } from "node:url";
import { build, commandFile, isBuilt } from "../shared/client/build.mjs";

try {
  if (process.argv[2] === "admin") {
    process.argv.splice(2, 1);
    await import("./admin.mjs");
  } else {
    if (!isBuilt()) {
      const { ensureInstalled } = await import("./install.mjs");
      await ensureInstalled();
      await build();
    }
    await import(pathToFileURL(commandFile).href);
  }
} catch (error) {
  console.error(`sandgate: ${error.message}`);
  process.exitCode = 1;
}
