/** Puts the program where the service accounts can read it. */
import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { asAccount } from "../base/as-account.ts";
import type { Account, Instance } from "../base/instance.ts";
import { run } from "../base/run.ts";
import type { Terminal } from "../base/terminal.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { readIfThere, replaceFile } from "../base/write-file.ts";

const program = ["package.json", "build", "systemd"];
/** What only the set-up reads, as root. */
const sources = ["worker/runtime/exec-server"];

/**
 * Returns the installation with the folder that its parts run from: the folder of package.json, or a copy in the data
 * directory if an account cannot read the former (a checkout below /root, or one made under a strict umask). It is a copy
 * and not a bind mount, because Podman's namespace may be older than the mount.
 */
export async function withReadableApp(instance: Instance, terminal: Terminal): Promise<Instance> {
  const { worker, gateway } = instance.accounts;
  const readable = await Promise.all([worker, gateway].map((account) => canRead(account, appDir)));
  if (!readable.includes(false)) return instance;
  const copy = join(instance.paths.data, "app");
  const title = `Copying the program, because ${readable[0] ? gateway.name : worker.name} may not read ${appDir}`;
  await terminal.task(title, copy, () => copyProgram(copy));
  return { ...instance, paths: { ...instance.paths, app: copy } };
}

async function canRead(account: Account, folder: string): Promise<boolean> {
  if (process.getuid?.() === account.uid) return true;
  const parts = [...program, "node_modules"].map((name) => join(folder, name));
  try {
    const unreadable = await run(asAccount(account, ["find", ...parts, "!", "-type", "l", "!", "-readable", "-print", "-quit"]), { cwd: "/" });
    return unreadable === "";
  } catch {
    return false;
  }
}

/** Makes a folder a copy of the program as it runs. The build is small and copied every time; packages only when they have changed. */
export async function copyProgram(copy: string): Promise<void> {
  await chmod(trustedPath(copy, { make: 0o755 }), 0o755);
  const stamp = createHash("sha256")
    .update(await readFile(join(appDir, "node_modules/.package-lock.json")))
    .digest("hex");
  const stampFile = join(copy, "node_modules.sha256");
  if ((await readIfThere(stampFile)) !== stamp) {
    await rm(stampFile, { force: true });
    await replaceCopy("node_modules", copy);
    for (const path of await developmentPackages()) await rm(join(copy, path), { recursive: true, force: true });
    await replaceFile(stampFile, stamp, { mode: 0o644 });
  }
  for (const name of [...program, ...sources]) await replaceCopy(name, copy);
}

/** Packages that only building and testing need. */
async function developmentPackages(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(appDir, "node_modules/.package-lock.json"), "utf8")) as { packages: Record<string, { dev?: boolean }> };
  return Object.entries(packages).flatMap(([path, { dev }]) => (dev ? [path] : []));
}

async function replaceCopy(name: string, copy: string): Promise<void> {
  const target = join(copy, name);
  const partial = `${target}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  // Of a folder that is a link, what is in it: a copy of the link would have what is removed from the copy removed there.
  await run(["cp", "-R", "-H", "--preserve=links,timestamps", "--reflink=auto", join(appDir, name), partial]);
  await run(["chmod", "-R", "u=rwX,go=rX", partial]);
  await rm(target, { recursive: true, force: true });
  await rename(partial, target);
}
