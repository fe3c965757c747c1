/** Users of this machine who attack `npm start`, and `npm start` itself as a process of its own. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { asAccount } from "../../systemd/as-account.ts";
import { appDir } from "../../systemd/instance.ts";
import { run } from "../../systemd/run.ts";

/** Somebody on this machine who has nothing to do with the product. */
export const nobody = { uid: 65_534, gid: 65_534 };

/** Runs a script of the shell as a user. */
export function shellAs(user: { uid: number; gid: number }, script: string, ...args: string[]): Promise<string> {
  return run(asAccount(user, ["sh", "-c", script, "sh", ...args]), { cwd: "/" });
}

/** A folder of root's that everybody can look into. */
export function openFolder(name: string): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `sandgate-${name}-`));
  chmodSync(path, 0o755);
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Runs a script of the product as root with these variables beside the usual ones; resolves when it has ended, however. */
export async function runScript(
  script: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<{ exitCode: number | undefined; output: string }> {
  // What a test runner tells its files would make a runner that is started by one do nothing.
  const env = Object.fromEntries(Object.entries({ ...process.env, ...variables }).filter(([name]) => !name.startsWith("NODE_TEST")));
  const { exitCode, all } = await execa(process.execPath, [script, ...args], {
    cwd: appDir,
    env,
    extendEnv: false,
    all: true,
    reject: false,
    stdin: "ignore",
    timeout: 120_000,
  });
  return { exitCode, output: all };
}
