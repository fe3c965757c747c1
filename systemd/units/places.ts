/** Where the services are on a machine, and what is done there in steps. */
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isSetting } from "../../shared/config.ts";
import { appDir } from "../../shared/programs.mjs";
import { settingsLines } from "../../shared/settings-file.ts";
import type { Progress } from "../base/terminal.ts";

/** The folders that the units name. */
export const programDir = "/usr/lib/sandgate";
export const unitsDir = "/etc/systemd/system";
export const settingsDir = "/etc/sandgate";
export const settingsFile = join(settingsDir, "sandgate.env");
/** Files for other programs of systemd, by their kind, with the command that carries one out now instead of at the next boot. */
export const declarations = {
  sysctl: ["/usr/lib/systemd/systemd-sysctl"],
  sysusers: ["systemd-sysusers"],
  tmpfiles: ["systemd-tmpfiles", "--create"],
} as const;
export type DeclarationKind = keyof typeof declarations;
export const declarationKinds = Object.keys(declarations) as DeclarationKind[];
export const declarationFile = (kind: DeclarationKind): string => `/etc/${kind}.d/60-sandgate.conf`;
/** What a Debian package has in place of `systemd/install`. */
export const packagedCommand = "/usr/sbin/sandgate-install";
export const commandsDir = "/usr/local/bin";
export const commands = { sandgate: [], "sandgate-admin": ["admin"] } as const;

export const unitNames = (): string[] => readdirSync(join(appDir, "systemd/units")).filter((name) => /\.(service|slice|socket|target)$/.test(name));

/** Part of an installation or of its removal. */
export interface Task {
  /** As in "Writing". */
  readonly title: string;
  /** What that is done to. */
  readonly object: string;
  /** Whether there is nothing to do. */
  readonly isDone?: () => boolean | Promise<boolean>;
  readonly work: (progress: Progress) => Promise<unknown>;
}

/** The settings of the services, which are not in the environment of who installs. */
export const settingsOf = async (): Promise<NodeJS.ProcessEnv> => parseSettings(await readFile(settingsFile, "utf8").catch(() => ""));

/** What a file of settings says; services may be given other variables in it as well. */
export function parseSettings(text: string): NodeJS.ProcessEnv {
  return Object.fromEntries(settingsLines(text).flatMap(({ name, value }) => (name && isSetting(name) ? [[name, value]] : [])));
}
