/** What a test file has set up when it is interrupted. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { appDir } from "../../shared/programs.mjs";

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`a file that gets ${signal} while it sets up leaves nothing`, async () => {
    const file = join(appDir, "test/unit/fixtures/interrupted.ts");
    // Without the variables by which the test runner knows its own.
    const child = spawn(process.execPath, ["--import", "tsx", file], { cwd: appDir, env: { PATH: process.env.PATH }, stdio: ["ignore", "pipe", "inherit"] });
    const ended: string[] = [];
    const exited = once(child, "exit");
    for await (const line of createInterface({ input: child.stdout })) {
      if (line === "making") child.kill(signal);
      if (line.startsWith("ended ")) ended.push(line);
    }
    assert.deepEqual(await exited, [1, null]);
    assert.deepEqual(ended.sort(), ["ended one", "ended three", "ended two"]);
  });
}
