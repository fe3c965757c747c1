/** The log of a process whose reader may be gone. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const log = fileURLToPath(new URL("../../../../shared/util/log.ts", import.meta.url));
const program = `
  const { createLogger } = await import(${JSON.stringify(log)});
  const log = createLogger("test", "info");
  log.info("it runs");
  for await (const _ of process.stdin);
  for (let line = 0; line < 10; line++) log.info({ line }, "nobody reads this");
  process.exit(7);
`;

test("a process ends although nobody reads its last lines any more", async () => {
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], { stdio: ["pipe", "pipe", "inherit"] });
  try {
    const ended = once(child, "exit");
    assert.match(String(await once(child.stdout, "data")), /"msg":"it runs"/);
    child.stdout.destroy();
    child.stdin.end();
    assert.deepEqual(await ended, [7, null]);
  } finally {
    child.kill("SIGKILL");
  }
});
