/**
 * The program that starts commands in sandboxes, compiled on this machine without the installation of a compiler: a small one and
 * a small C library are unpacked from their Debian packages, used once and removed. The result is static, because it runs in any image.
 */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arch } from "node:process";
import { appDir } from "../../shared/programs.mjs";
import { messageOf } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { run } from "../base/run.ts";
import type { Terminal } from "../base/terminal.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import type { Administrator } from "./administrator.ts";
import { aptUnpack, aptUpdate, hasCandidates } from "./apt.ts";
import { type Archive, furtherArchives } from "./apt-sources.ts";

const sourceDir = join(appDir, "worker/runtime/exec-server");
const sources = ["server.c", "files.c", "files.h", "keep.c", "keep.h", "root.c", "root.h", "terminal.c", "terminal.h"].map((name) => join(sourceDir, name));
const prefix = "exec-server-";
/** A compiler, its own headers, and the C library. */
const packages = ["tcc", "musl-dev"];
/** As Debian names what it builds for this machine. */
const multiarch = arch === "arm64" ? "aarch64-linux" : "x86_64-linux";

/**
 * Makes the program if this version's is not there. Without it, every command is started by the OCI runtime. Those of other
 * versions stay, because the containers made with them start with them again.
 *
 * @returns its path; undefined when it cannot be made here, which the user has been told
 */
export async function execServer({ paths, account }: Instance, administrator: Administrator, terminal: Terminal): Promise<string | undefined> {
  const version = createHash("sha256").update(arch);
  for (const source of sources) version.update(await readFile(source));
  const name = `${prefix}${version.digest("hex").slice(0, 16)}`;
  const path = join(paths.podman, name);
  if ((await readIfThere(path)) !== undefined) return path;
  try {
    await terminal.task("Building the exec server", "its program", async (progress) => {
      if (!(await hasCandidates(packages))) await aptUpdate(administrator, progress);
      progress.say("compiling");
      const archives = (await hasCandidates(packages)) ? [] : await furtherArchives();
      await replaceFile(path, await compiled(archives), { mode: 0o755, uid: process.getuid?.() ?? 0, gid: account.gid });
    });
    return path;
  } catch (error) {
    terminal.warn(`Commands will start more slowly, because the exec server could not be built: ${lastLine(messageOf(error))}`);
    return undefined;
  }
}

async function compiled(archives: readonly Archive[]): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-build-"));
  try {
    await aptUnpack(packages, folder, archives);
    const [compiler, musl] = [join(folder, `usr/lib/${multiarch}-gnu/tcc`), join(folder, `usr/lib/${multiarch}-musl`)];
    const program = join(folder, "exec-server");
    const headers = [join(folder, `usr/include/${multiarch}-musl`), join(compiler, "include")].map((dir) => `-I${dir}`);
    const ofMusl = (...names: string[]): string[] => names.map((name) => join(musl, name));
    const objects = [...ofMusl("crt1.o", "crti.o"), ...sources.filter((source) => source.endsWith(".c")), ...ofMusl("libc.a", "crtn.o")];
    await run([join(folder, "usr/bin/tcc"), "-Wall", "-Werror", "-static", "-nostdinc", "-nostdlib", "-B", compiler, ...headers, ...objects, "-o", program]);
    return await readFile(program);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";
