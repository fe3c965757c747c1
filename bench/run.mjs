/** `npm run bench` and `npm run load`: installs what is missing, then runs a program of this folder on the Node.js that the product uses. */
import { appDir } from "../shared/programs.mjs";
import { ensureInstalled, runForwarding, withTemporaryFolder } from "../systemd/install.mjs";

try {
  const node = await ensureInstalled({ dev: true });
  const args = ["--disable-warning=ExperimentalWarning", "--experimental-strip-types", ...process.argv.slice(2)];
  const { code } = await withTemporaryFolder((env) => runForwarding(node, args, { cwd: appDir, env, stdio: "inherit" }));
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
