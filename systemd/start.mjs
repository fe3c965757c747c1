/**
 * `npm start`: installs the packages if need be and hands over to up.ts under the Node.js that comes with them.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { join } from "node:path";
import { appDir, ensureInstalled, runForwarding } from "./install.mjs";

try {
  const node = await ensureInstalled();
  const args = [join(appDir, "systemd/up.ts"), ...process.argv.slice(2)];
  // The extra channel tells up.ts when this process was killed and can forward no signal any more.
  const { code, signal } = await runForwarding(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"], started: stopWithNpm });
  if (signal) process.kill(process.pid, signal);
  process.exitCode = code ?? 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

/** npm forwards signals, but says nothing when it is killed itself. up.ts takes the end of the channel as a request to stop. */
function stopWithNpm(child) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  const watch = () => process.ppid !== parent && child.connected && child.disconnect();
  setInterval(watch, 1_000).unref();
}
