/** `npm test`: installs what is missing, then runs the tests on the Node.js that the product runs on. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appDir, ensureInstalled, runForwarding } from "../systemd/install.mjs";

// Every file of tests is a process that reads much the same sources: what Node.js makes of them is kept for the next.
const compiled = mkdtempSync(join(tmpdir(), "sandgate-compiled-"));
try {
  const node = await ensureInstalled({ dev: true });
  const env = { ...process.env, NODE_COMPILE_CACHE: compiled };
  const { code } = await runForwarding(node, ["--import", "tsx", "test/run.ts", ...process.argv.slice(2)], { cwd: appDir, env, stdio: "inherit" });
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(compiled, { recursive: true, force: true });
}
