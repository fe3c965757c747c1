/** Root file systems of the machines that tests boot: Debian with systemd and what Sandgate needs, because they reach no archive. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../systemd/base/run.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { findImageSources } from "../../systemd/setup/apt-sources.ts";
import { imageBuildingPackages, systemPackageNames } from "../../systemd/setup/packages.ts";
import { ensure } from "../../systemd/setup/step.ts";
import { waitForLock } from "../../systemd/supervisor/lock.ts";
import { preparedInstance } from "../helpers/prepare.ts";

/** Versions of Debian: 12 and 13. */
export type Suite = "bookworm" | "trixie";

/** What Sandgate's set-up would install, and what runs services. */
export const servicePackages = [...systemPackageNames, "systemd", "systemd-sysv", "dbus", "libpam-systemd"];

/**
 * A folder that is built when its recipe is new, by one process while others wait for it. Folders of former recipes are removed.
 *
 * @param kind the name of the folder above it
 * @param build makes the folder that it is given
 */
export async function builtOnce(kind: string, recipe: unknown, build: (partial: string) => Promise<void>): Promise<string> {
  const { paths } = await preparedInstance();
  const folder = join(paths.data, kind);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const lock = await waitForLock(`${folder}.lock`, new AbortController().signal);
  try {
    const built = join(folder, createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 16));
    if (existsSync(built)) return built;
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
    await build(`${built}.partial`);
    renameSync(`${built}.partial`, built);
    return built;
  } finally {
    lock.release();
  }
}

/** Makes a root file system with these packages. */
export async function makeDebian(root: string, packages: readonly string[], suite: Suite = "trixie"): Promise<void> {
  const { config } = await preparedInstance();
  const terminal = new Terminal(process.stderr);
  await ensure(imageBuildingPackages(createAdministrator(terminal, new AbortController().signal)), terminal);
  const [archive] = (await findImageSources(config)).archives;
  await run(["mmdebstrap", "--quiet", "--variant=minbase", `--include=${packages.join(",")}`, suite, root, archive?.uri ?? ""]);
  // Sandgate's own is the only one.
  rmSync(join(root, "etc/systemd/system/multi-user.target.wants/nats-server.service"), { force: true });
  // It reaches no archive. Without any in its list, it knows at once.
  for (const name of ["sources.list", "sources.list.d"]) rmSync(join(root, "etc/apt", name), { recursive: true, force: true });
}
