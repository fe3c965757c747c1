/** `npm test`: installs what is missing, then runs the tests on the Node.js that the product runs on. */
import { appDir } from "../shared/programs.mjs";
import { ensureBuilt } from "../systemd/build.mjs";
import { ensureInstalled, runForwarding, withTemporaryFolder } from "../systemd/install.mjs";

try {
  const node = await ensureInstalled({ dev: true });
  await ensureBuilt(node);
  const args = ["--enable-source-maps", "test/bundle.mjs", ...process.argv.slice(2)];
  const { code } = await withTemporaryFolder((env) => runForwarding(node, args, { cwd: appDir, env, stdio: "inherit" }));
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
