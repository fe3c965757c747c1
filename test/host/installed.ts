/** A machine on which Sandgate is installed as an administrator would, whatever kind of machine it is. */
import { basename, join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { CommandError, run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { preparedExecServer } from "../helpers/prepare.ts";

/** Where programs of the machine find a checkout to install. Its name is none of what a removal takes away. */
export const programDir = "/opt/checkout";
/** The folder with Podman's configuration, the record of the default image, and the exec server. */
export const podmanDir = "/var/lib/sandgate/podman";

/** What runs a command as the worker's account runs Podman, in a shell of the machine. */
export const asWorker = `env -C / setpriv --reuid sandgate --regid sandgate --init-groups env -i HOME=/var/lib/sandgate/home PATH="$PATH" \\
  XDG_RUNTIME_DIR="$(echo /run/user/"$(id -u sandgate)"/sg-*)" CONTAINERS_STORAGE_CONF=${podmanDir}/storage.conf CONTAINERS_CONF=${podmanDir}/containers.conf`;

/** A command with the environment of root's own log-in, and nothing of the test's. */
export const cleanly = (argv: readonly string[]): string[] => ["env", "-i", `PATH=${searchPath}`, "HOME=/root", "LC_ALL=C.UTF-8", ...argv];

export abstract class InstalledMachine {
  /** Runs a command in it as root. @returns its standard output @throws {CommandError} */
  abstract run(...argv: string[]): Promise<string>;

  /** Copies a file of this machine to the other. @returns its path there */
  abstract give(file: string): Promise<string>;

  /** Gives it a default image, and tells it that it is that. */
  protected abstract provideDefaultImage(): Promise<void>;

  /** Runs a line of shell in it. */
  shell(script: string): Promise<string> {
    return this.run("sh", "-euc", script);
  }

  /** The operator's key. */
  readonly key = (): Promise<string> => this.run("cat", "/var/lib/sandgate/api-key");

  /** Unpacks the Debian package. The machine reaches no archive to build an image from, nor to get what does so. */
  unpack(file: string): Promise<string> {
    return this.run("dpkg", "--install", "--ignore-depends=mmdebstrap", file);
  }

  /**
   * Installs Sandgate as an administrator would who brings the default image along.
   *
   * @param settings lines for the settings file, beside those that the installation writes
   * @param further exec servers beside that of this version
   */
  async install(
    options: readonly string[],
    settings: readonly string[] = [],
    program = join(programDir, "systemd/install"),
    further: readonly string[] = [],
  ): Promise<string> {
    const command = [program, ...options];
    // There is no archive of packages to build the default image from; what comes before it, the image needs.
    const lacksArchive = (error: unknown): boolean => error instanceof CommandError && error.output.includes("could not install mmdebstrap");
    const first = await this.run(...command).catch((error: unknown) => (lacksArchive(error) ? undefined : Promise.reject(error)));
    if (first !== undefined) return first;
    await this.provideImage(further);
    for (const line of settings) await this.run("sh", "-c", 'echo "$0" >> /etc/sandgate/sandgate.env', line);
    return this.run(...command);
  }

  /** Gives it the default image and the program that the set-up would make, for which it would need an archive of packages. */
  async provideImage(further: readonly string[] = []): Promise<void> {
    await this.provideDefaultImage();
    for (const made of [preparedExecServer(), ...further]) {
      const server = await this.give(made);
      await this.shell(`install -m 0755 ${server} ${podmanDir}/${basename(server)}; rm ${server}`);
    }
  }
}

/** Makes the Debian package of this checkout. @returns its path */
export async function debianPackage(): Promise<string> {
  const said = await run([join(appDir, "node_modules/.bin/node"), "systemd/package.mjs"], { cwd: appDir });
  return said.trim().split("\n").at(-1) ?? "";
}
