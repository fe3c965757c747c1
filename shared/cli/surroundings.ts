/** The only place where the command line reads its environment, besides what the client itself reads. */
import { homedir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";

/** The file in which `login` stores its settings. */
export function settingsFile(): string {
  return join(env.XDG_CONFIG_HOME || join(homedir(), ".config"), "sandgate", "config.json");
}

export function wantsColour(out: { isTTY?: boolean }): boolean {
  return out.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
}

/** A variable of the user's environment, for `--env NAME`. */
export function ownVariable(name: string): string | undefined {
  return env[name];
}
