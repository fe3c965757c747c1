/** The npm packages, the Node.js among them: each is held to a hash, and none runs anything while it is installed. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { execa } from "execa";

interface LockEntry {
  readonly version?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: true;
  readonly optional?: true;
  readonly os?: string | string[];
  readonly cpu?: string | string[];
  readonly libc?: string | string[];
  readonly optionalDependencies?: Record<string, string>;
}

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, LockEntry> };
const architectures = ["x64", "arm64"];
const nodeOf = (architecture: string): LockEntry => packages[`node_modules/node-linux-${architecture}`] ?? {};

describe("the lock file", () => {
  for (const cpu of architectures) {
    const installed = Object.entries(packages).filter(
      ([path, entry]) => path !== "" && [entry.os ?? "linux"].flat().includes("linux") && [entry.cpu ?? cpu].flat().includes(cpu) && entry.libc?.[0] !== "musl",
    );

    test(`has the hash of everything that is installed on ${cpu}, Node.js included`, () => {
      assert.equal(nodeOf(cpu).version, nodeOf("x64").version);
      assert.ok(installed.some(([, entry]) => entry === nodeOf(cpu)) && installed.length > 100);
      for (const [path, { integrity }] of installed) assert.match(integrity ?? "", /^sha512-[\w+/]{86}==$/, path);
    });

    test(`has what install scripts would compile or fetch as a package of its own for ${cpu}`, () => {
      const scripted = installed.filter(([, entry]) => entry.hasInstallScript);
      for (const [path, { optionalDependencies = {} }] of scripted) {
        const compiled = Object.keys(optionalDependencies).find((name) => name.endsWith(`linux-${cpu}`));
        assert.ok(compiled && packages[`node_modules/${compiled}`]?.integrity, path);
      }
    });
  }
});

describe("installing", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "sandgate-install-"));
    for (const name of ["systemd/install.mjs", "systemd/base/search-path.mjs", "systemd/base/trusted-path.mjs", "shared/programs.mjs"])
      cpSync(name, join(folder, name));
    // What an administrator may have set otherwise.
    writeFileSync(join(folder, ".npmrc"), "ignore-scripts=false\nomit[]=optional\nomit[]=dev\n");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** A package with an install script, as a file beside the lock file. */
  async function scripted(): Promise<LockEntry & { resolved: string }> {
    const manifest = { name: "scripted", version: "1.0.0", scripts: { preinstall: `touch ${folder}/ran`, install: `touch ${folder}/ran` } };
    mkdirSync(join(folder, "package"));
    writeFileSync(join(folder, "package/package.json"), JSON.stringify(manifest));
    await execa("tar", ["--create", "--gzip", "--file=scripted.tgz", "package"], { cwd: folder });
    const hash = createHash("sha512").update(readFileSync(join(folder, "scripted.tgz")));
    return { version: "1.0.0", resolved: "file:scripted.tgz", integrity: `sha512-${hash.digest("base64")}`, hasInstallScript: true, optional: true };
  }

  /** What `npm start` begins with, in the folder; prints the Node.js that is to be used. */
  async function install(entries: Record<string, LockEntry & { resolved?: string }>): Promise<{ said: string; node: string }> {
    const optionalDependencies = Object.fromEntries(Object.entries(entries).map(([name, { version = "", resolved }]) => [name, resolved ?? version]));
    const root = { name: "installed", version: "1.0.0", optionalDependencies };
    const locked = Object.fromEntries(Object.entries(entries).map(([name, entry]) => [`node_modules/${name}`, entry]));
    writeFileSync(join(folder, "package.json"), JSON.stringify(root));
    writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ ...root, lockfileVersion: 3, requires: true, packages: { "": root, ...locked } }));
    const program =
      'import("./systemd/install.mjs").then(({ ensureInstalled }) => ensureInstalled()).then(console.log, ({ message }) => console.error(message))';
    const { stdout, stderr } = await execa(process.execPath, ["-e", program], { cwd: folder });
    return { node: stdout, said: stderr };
  }

  const nodes = Object.fromEntries(architectures.map((cpu) => [`node-linux-${cpu}`, nodeOf(cpu)]));

  test("gives the Node.js of the lock file, and runs no script whatever npm's settings are", async () => {
    const { node, said } = await install({ ...nodes, scripted: await scripted() });
    assert.equal((await execa(node, ["--version"])).stdout, `v${nodeOf("x64").version}`, said);
    assert.ok(existsSync(join(folder, "node_modules/scripted/package.json")));
    assert.ok(!existsSync(join(folder, "ran")));
  });

  test("fails by the name of a package that is not what the lock file has the hash of", async () => {
    const entry = await scripted();
    const forged = `sha512-${createHash("sha512").update("another").digest("base64")}`;
    const { node, said } = await install({ [`node-linux-${process.arch}`]: { ...entry, integrity: forged } });
    assert.equal(node, "");
    assert.match(said, new RegExp(`npm ci left out node-linux-${process.arch}: `));
    assert.ok(!existsSync(join(folder, "node_modules/.bin/node")));
  });

  test("fails on an architecture that there is no Node.js for", async () => {
    const { node, said } = await install({ "node-linux-s390x": { version: "1.0.0", optional: true, os: "linux", cpu: "s390x" } });
    assert.deepEqual([node, said], ["", `Sandgate runs on s390x only; this is ${process.arch}`]);
  });
});
