/** An image with the compilers and interpreters that Debian has, in this machine's store; built when its recipe is new. */
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import type { Instance } from "../../systemd/base/instance.ts";
import { run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { Terminal } from "../../systemd/base/terminal.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { imageBuildingPackages } from "../../systemd/setup/packages.ts";
import { buildRootFilesystem, contentsOf, type Recipe } from "../../systemd/setup/root-filesystem.ts";
import { ensure } from "../../systemd/setup/step.ts";

const repository = "localhost/sandgate-test/toolchains";

const recipe: Recipe = {
  packages: [
    ...["gcc", "libc6-dev", "git", "python3", "python3-venv", "nodejs", "sqlite3", "golang-go", "default-jdk-headless"],
    ...["strace", "procps", "adduser", "iputils-ping"],
  ],
  // Packages of Java make links to their manuals there.
  hooks: ['--essential-hook=mkdir -p "$1/usr/share/man/man1"'],
};
const configuration = [`ENV PATH=${searchPath}`, "ENV LANG=C.UTF-8", "WORKDIR /root"];

/** The image's name; another one for another recipe. */
export const toolchains = `${repository}:${createHash("sha256")
  .update(JSON.stringify([contentsOf(recipe), configuration]))
  .digest("hex")
  .slice(0, 16)}`;

/** Makes sure that the image is there, and removes those of other recipes. @returns its name. */
export async function toolchainsImage(instance: Instance): Promise<string> {
  const podman = (...args: string[]) => run(inPodmanNamespace(instance, ["podman", ...args]), { env: accountEnvironment(instance), cwd: "/" });
  const names = (await podman("images", "--format", "{{.Repository}}:{{.Tag}}", repository)).split("\n").filter(Boolean);
  if (names.includes(toolchains)) return toolchains;
  for (const name of names) await podman("rmi", name);
  const terminal = new Terminal(process.stderr);
  const { signal } = new AbortController();
  const administrator = createAdministrator(terminal, signal);
  await ensure(imageBuildingPackages(administrator), terminal);
  const archive = join(instance.paths.temporary, "toolchains.tar");
  try {
    await buildRootFilesystem(instance, recipe, archive, { administrator, signal }, { say: () => {} });
    await podman("import", "--quiet", ...configuration.flatMap((change) => ["--change", change]), archive, toolchains);
  } finally {
    await rm(archive, { force: true });
  }
  return toolchains;
}
