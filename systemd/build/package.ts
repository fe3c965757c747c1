/** Makes a Debian package: the program with its Node.js, as `systemd/install` copies it, and the command that sets a machine up. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { run } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import { copyProgram } from "../setup/app-directory.ts";
import { packagedNeeds } from "../setup/packages.ts";
import { findProgram } from "../setup/programs.ts";
import { packagedCommand, programDir } from "../units/places.ts";
import { versionOf } from "./version.ts";

const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };
const architecture = architectures[process.arch] ?? process.arch;
const { version: release, description } = JSON.parse(readFileSync(join(appDir, "package.json"), "utf8")) as { version: string; description: string };

const command = `#!/bin/sh
# Sets this machine up, or takes Sandgate off it: sandgate-install --help
exec ${programDir}/node_modules/.bin/node ${programDir}/build/systemd-units-install.js "$@"
`;

/** What packages bring for other machines, or for compiling. */
function removeUnused(packages: string): void {
  const node = join(packages, `node-linux-${process.arch}`);
  for (const name of ["include", "share", "CHANGELOG.md"]) rmSync(join(node, name), { recursive: true, force: true });
  const compiled = join(packages, "uWebSockets.js/dist/bin");
  const own = `uws_linux_${process.arch}_${process.versions.modules}.node`;
  for (const name of readdirSync(compiled)) if (name !== own) rmSync(join(compiled, name), { recursive: true });
}

function control(version: string, installedBytes: number): string {
  const { depends, recommends } = packagedNeeds();
  const fields = {
    Package: "sandgate",
    Version: version,
    Architecture: architecture,
    Maintainer: "The Sandgate authors <sandgate@localhost>",
    "Installed-Size": String(Math.ceil(installedBytes / 1024)),
    Depends: depends.join(", "),
    Recommends: recommends.join(", "),
    Section: "admin",
    Priority: "optional",
    Description: `${description}\n Runs untrusted code in rootless containers, for clients of its HTTP and WebSocket API.`,
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("");
}

async function makePackage(root: string): Promise<string> {
  const program = join(root, programDir);
  await copyProgram(program);
  removeUnused(join(program, "node_modules"));
  mkdirSync(join(root, "usr/sbin"), { recursive: true });
  writeFileSync(join(root, packagedCommand), command, { mode: 0o755 });
  const [size = "0"] = (await run(["du", "--summarize", "--bytes", root])).split("\t");
  mkdirSync(join(root, "DEBIAN"));
  const version = await versionOf(appDir, release);
  writeFileSync(join(root, "DEBIAN/control"), control(version, Number(size)));
  for (const script of ["postinst", "prerm", "postrm"]) cpSync(join(appDir, "systemd/build/debian", script), join(root, "DEBIAN", script));
  const file = join(appDir, "dist", `sandgate_${version}_${architecture}.deb`);
  mkdirSync(join(appDir, "dist"), { recursive: true });
  // Every Debian and Ubuntu that Sandgate runs on knows zstd.
  await run(["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", root, file]);
  return file;
}

process.env.PATH = searchPath;
process.umask(0o022);
if (!findProgram("dpkg-deb")) {
  console.error("dpkg-deb is needed, which Debian and Ubuntu have.");
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), "sandgate-package-"));
const root = join(folder, "root");
try {
  mkdirSync(root);
  console.log(await makePackage(root));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
