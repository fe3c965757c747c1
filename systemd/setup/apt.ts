/** Runs apt-get, with the two repairs that a machine commonly needs: updating the package lists and finishing an interrupted dpkg. */
import { chmod, readdir } from "node:fs/promises";
import { join } from "node:path";
import { StartFailure } from "../base/failure.ts";
import { CommandError, run } from "../base/run.ts";
import type { Progress } from "../base/terminal.ts";
import type { Administrator } from "./administrator.ts";
import { type Archive, sourceLine } from "./apt-sources.ts";

const patience = ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=2"];

/** On a machine without a network, every start tries in vain. */
const impatience = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::https::Timeout=10"];
const downloadMsMax = 60_000;

/**
 * Unpacks packages into a folder without installing them, or what they depend on.
 *
 * @param archives where they are, if not in this machine's sources
 */
export async function aptUnpack(packages: readonly string[], folder: string, archives: readonly Archive[] = []): Promise<void> {
  // apt downloads as a user of its own where it can.
  await chmod(folder, 0o755);
  const [first, ...rest] = archives;
  const download = ["download", ...packages];
  await run(first ? inArchives([first, ...rest], download) : ["apt-get", ...impatience, ...download], { cwd: folder, timeoutMs: downloadMsMax });
  for (const file of (await readdir(folder)).filter((name) => name.endsWith(".deb"))) await run(["dpkg-deb", "--extract", join(folder, file), folder]);
}

/** Whether the package lists on this machine offer all of `packages`. */
export async function hasCandidates(packages: readonly string[]): Promise<boolean> {
  const policy = await run(["apt-cache", "policy", ...packages], { env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } });
  return (policy.match(/^ +Candidate: (?!\(none\))/gm) ?? []).length === packages.length;
}

/** The version of a package that this machine's sources offer; "(none)" without one. */
export async function candidateOf(name: string): Promise<string> {
  const policy = await run(["apt-cache", "policy", name], { env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } });
  return /^ +Candidate: (.+)$/m.exec(policy)?.[1] ?? "(none)";
}

export async function aptUpdate(administrator: Administrator, progress: Progress): Promise<void> {
  progress.say("updating the package lists");
  await administrator.run("update the package lists", ["apt-get", ...patience, "update"], { onLine: (line) => tellHolder(line, progress) });
}

/** @throws {StartFailure} if apt cannot install them, with apt's message. */
export async function aptInstall(administrator: Administrator, packages: readonly string[], progress: Progress): Promise<void> {
  const install = async () => {
    const argv = ["apt-get", ...patience, "install", "-y", "--no-install-recommends", ...packages];
    await administrator.run(`install ${packages.join(", ")}`, argv, { onLine: (line) => tellPackage(line, progress) });
  };
  const again = async (error: unknown): Promise<void> => {
    if (!(error instanceof CommandError)) throw error;
    if (error.output.includes("dpkg --configure -a")) await administrator.run("finish an interrupted installation", ["dpkg", "--configure", "-a"]);
    else await aptUpdate(administrator, progress);
    await install();
  };
  await install().catch(again).catch(failure(packages));
}

const failure =
  (packages: readonly string[]) =>
  (error: unknown): never => {
    if (!(error instanceof CommandError)) throw error;
    throw new StartFailure(`apt could not install ${packages.join(", ")}:\n${error.message}`);
  };

const archivesScript = `set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir "$dir/lists" "$dir/cache"
echo "$1" > "$dir/sources.list"
suite=$2
shift 2
in_archive() {
  apt-get ${patience.join(" ")} -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Default-Release="$suite" "$@"
}
in_archive update
in_archive "$@"`;

/** apt-get with these archives in place of this machine's sources, which they do not become. */
const inArchives = (archives: readonly [Archive, ...Archive[]], command: readonly string[]): string[] => [
  ...["sh", "-c", archivesScript, "sh", archives.map(sourceLine).join("\n"), archives[0].suite],
  ...command,
];

/**
 * Installs packages from archives that need not be this machine's sources, and do not become them.
 *
 * @param archives the preferred one, then others for what its packages need
 * @throws {StartFailure} if apt cannot install them, with apt's message
 */
export async function aptInstallFrom(
  administrator: Administrator,
  archives: readonly [Archive, ...Archive[]],
  packages: readonly string[],
  progress: Progress,
): Promise<void> {
  const argv = inArchives(archives, ["install", "-y", "--no-install-recommends", ...packages]);
  await administrator.run(`install ${packages.join(", ")}`, argv, { onLine: (line) => tellPackage(line, progress) }).catch(failure(packages));
}

function tellPackage(line: string, progress: Progress): void {
  tellHolder(line, progress);
  const unpacking = /^(?:Unpacking|Setting up) ([^ :]+)/.exec(line);
  if (unpacking) progress.say(unpacking[0].toLowerCase());
}

/** While another program holds the package lock, apt waits and prints which one. */
function tellHolder(line: string, progress: Progress): void {
  const holder = /held by (process \d+ \([^)]*\))/.exec(line)?.[1];
  if (holder) progress.say(`waiting for ${holder}, which has locked the packages`);
}

/** apt's proxy as an environment assignment, because mmdebstrap does not read apt.conf. */
export async function aptProxy(): Promise<string[]> {
  const shell = await run(["apt-config", "shell", "proxy", "Acquire::http::Proxy"]).catch(() => "");
  const proxy = /^proxy='(.+)'$/m.exec(shell)?.[1];
  return proxy && proxy !== "DIRECT" ? [`http_proxy=${proxy}`] : [];
}
