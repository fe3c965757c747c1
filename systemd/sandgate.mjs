#!/usr/bin/env node
/**
 * `npx sandgate` in a clone: hands over to the command line, which is built first where its sources have changed.
 * What operators do goes to admin.mjs: they may be root.
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
