/** Runs single commands as root: directly, or through sudo, which is invoked only when needed. */
import { proxyEnvironment } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import { type RunOptions, run, succeeds } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import type { Terminal } from "../base/terminal.ts";
import { findProgram } from "./programs.ts";

type AdministratorOptions = Pick<RunOptions, "onLine" | "killSignal"> & {
  /** Runs even after a stop was requested: for clean-up, and for commands that must not be left half done. */
  readonly always?: true;
};

export interface Administrator {
  /**
   * Runs a command as root. `why` completes "administrator rights are needed to …".
   *
   * @throws {StartFailure} if there is no way to become root.
   */
  run(why: string, argv: readonly string[], options?: AdministratorOptions): Promise<string>;
  /** Whether `run` works without prompting for a password. */
  silent(): Promise<boolean>;
  /** Whether `run` never prompts, also not later, when sudo has forgotten a password. */
  unattended(): Promise<boolean>;
}

/** How the current user gets root rights. Aborting `signal` ends running commands. */
export function createAdministrator(terminal: Terminal, signal: AbortSignal): Administrator {
  const root = process.getuid?.() === 0;
  let asked: Promise<void> | undefined;
  return {
    silent: async () => root || (findProgram("sudo") !== undefined && (await sudoIsSilent())),
    unattended: async () => root || (findProgram("sudo") !== undefined && (await succeeds(["sudo", "-n", "-k", "true"]))),
    run: async (why, argv, { always, ...rest } = {}) => {
      const options = always ? rest : { ...rest, signal };
      const command = ["env", ...Object.entries(rootEnvironment()).map(([name, value]) => `${name}=${value}`), ...argv];
      if (root) return run(command, options);
      asked ??= becomeAbleToSudo(terminal, why, argv);
      await asked;
      return run(["sudo", "--", ...command], { ...options, input: "terminal" });
    },
  };
}

/** sudo drops the environment, and the user's own must not influence root either. */
function rootEnvironment(): Record<string, string> {
  return { ...proxyEnvironment(), PATH: searchPath, HOME: "/root", LC_ALL: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive" };
}

async function becomeAbleToSudo(terminal: Terminal, why: string, argv: readonly string[]): Promise<void> {
  const advice = `Have an administrator run this, then start again: ${argv.join(" ")}`;
  if (!findProgram("sudo")) throw new StartFailure(`Administrator rights are needed to ${why}, and sudo is not installed. ${advice}`);
  if (await sudoIsSilent()) return;
  if (!process.stdin.isTTY) throw new StartFailure(`Administrator rights are needed to ${why}, and sudo wants a password. ${advice}`);
  terminal.line(`Administrator rights are needed to ${why}.`);
  const granted = await terminal.whileAsking(() => succeeds(["sudo", "-v"], { input: "terminal" }));
  if (!granted) throw new StartFailure(`sudo was refused. ${advice}`);
}

/** Runs in the terminal's session, because sudo remembers a password for each terminal. */
function sudoIsSilent(): Promise<boolean> {
  return succeeds(["sudo", "-n", "true"], { input: "terminal" });
}
