/** `npm run bench`: installs what is missing, then measures on the Node.js that the product runs on. */
import { appDir, ensureInstalled, runForwarding } from "../systemd/install.mjs";

try {
  const node = await ensureInstalled({ dev: true });
  const { code } = await runForwarding(node, ["--import", "tsx", "bench/main.ts", ...process.argv.slice(2)], { cwd: appDir, stdio: "inherit" });
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
