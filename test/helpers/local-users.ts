/** Users of this machine who attack `npm start`, and `npm start` itself as a separate process. */
import { join } from "node:path";
import { execa } from "execa";
import { appDir } from "../../shared/programs.mjs";
import { asAccount } from "../../systemd/base/as-account.ts";
import { run } from "../../systemd/base/run.ts";

/** A user of this machine who is unrelated to the product. */
export const nobody = { uid: 65_534, gid: 65_534 };

/** Runs a script of the shell as a user. */
export function shellAs(user: { uid: number; gid: number }, script: string, ...args: string[]): Promise<string> {
  return run(asAccount(user, ["sh", "-c", script, "sh", ...args]), { cwd: "/" });
}

interface Ended {
  readonly exitCode: number | undefined;
  readonly output: string;
}

/** `npm start` with these arguments and variables beside the usual ones, from this checkout or another; resolves when it has ended, however. */
export function npmStart(args: readonly string[], variables: Readonly<Record<string, string>>, app = appDir): Promise<Ended> {
  return ended("/bin/sh", [join(app, "systemd/start"), ...args], variables);
}

/** Runs a script of the product as root. */
export function runScript(script: string, args: readonly string[], variables: Readonly<Record<string, string>>): Promise<Ended> {
  return ended(process.execPath, [script, ...args], variables);
}

async function ended(file: string, args: readonly string[], variables: Readonly<Record<string, string>>): Promise<Ended> {
  // The test runner's environment variables would make a nested test runner do nothing.
  const env = Object.fromEntries(Object.entries({ ...process.env, ...variables }).filter(([name]) => !name.startsWith("NODE_TEST")));
  const options = { cwd: appDir, env, extendEnv: false, all: true, reject: false, stdin: "ignore", timeout: 120_000 } as const;
  const { exitCode, all } = await execa(file, args, options);
  return { exitCode, output: all };
}
