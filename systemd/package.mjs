/** `npm run package`: a Debian package of this checkout, for machines of this kind. Plain JavaScript, like what it calls first. */
import { appDir } from "../shared/programs.mjs";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled, runForwarding } from "./install.mjs";

try {
  const node = await ensureInstalled();
  await ensureBuilt(node);
  const { code } = await runForwarding(node, ["systemd/build/package.ts"], { cwd: appDir, stdio: "inherit" });
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
