/** The package sources of this machine, Debian's or Ubuntu's, as lines of sources.list(5). */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../../shared/config.ts";

/** A package archive. */
export interface Archive {
  readonly uri: string;
  readonly suite: string;
  readonly components: readonly string[];
}

/** The suite and the archives from which the default image is built. */
export interface ImageSources {
  readonly suite: string;
  readonly archives: readonly Archive[];
}

const folder = "/etc/apt";

interface Distribution {
  readonly mirror: string;
  /** In which everything is that Sandgate needs. */
  readonly components: readonly string[];
}

const debian: Distribution = { mirror: "http://deb.debian.org/debian", components: ["main"] };
/** Podman, crun, nats-server and others are in universe, which not every machine has among its sources. */
const ubuntu: Distribution = {
  mirror: `http://${process.arch === "x64" ? "archive.ubuntu.com/ubuntu" : "ports.ubuntu.com/ubuntu-ports"}`,
  components: ["main", "universe"],
};

/** The machine's own suite and archives; plain Debian stable on a machine without apt. SANDGATE_APT_MIRROR overrides. */
export const findImageSources = async ({ aptMirror }: Pick<Config, "aptMirror">): Promise<ImageSources> =>
  imageSources(await readFile("/etc/os-release", "utf8").catch(() => ""), await readSourceFiles(), aptMirror);

/** @param files of sources, by their names in apt's folder @param mirror instead of them */
export function imageSources(osRelease: string, files: readonly SourceFile[], mirror = ""): ImageSources {
  const suite = suiteOf(osRelease);
  const { mirror: usual, components } = isUbuntu(osRelease) ? ubuntu : debian;
  if (mirror) return { suite, archives: [{ uri: mirror, suite, components }] };
  const archives = parseAll(files).filter((archive) => isOfSuite(archive, suite));
  const complete = archives.some((archive) => archive.suite === suite);
  if (!complete) return { suite, archives: [{ uri: usual, suite, components }] };
  return { suite, archives: isUbuntu(osRelease) ? archives.map((archive) => ({ ...archive, components })) : archives };
}

/** Archives that have what this machine's own sources may lack: Ubuntu's universe. None on other distributions. */
export async function furtherArchives(): Promise<readonly Archive[]> {
  const osRelease = await readFile("/etc/os-release", "utf8").catch(() => "");
  return isUbuntu(osRelease) ? imageSources(osRelease, await readSourceFiles()).archives : [];
}

const isUbuntu = (osRelease: string): boolean => /^ID="?ubuntu"?$/m.test(osRelease);

/** The archive as a line for sources.list. */
export function sourceLine({ uri, suite, components }: Archive): string {
  return `deb ${uri} ${suite} ${components.join(" ")}`;
}

/** The code name of the distribution if it is Debian or Ubuntu, else `stable`. */
export function suiteOf(osRelease: string): string {
  const value = (name: string) => new RegExp(`^${name}="?([^"\\n]*)"?$`, "m").exec(osRelease)?.[1];
  const isKnown = ["debian", "ubuntu"].includes(value("ID") ?? "");
  return (isKnown && value("VERSION_CODENAME")) || "stable";
}

/** Archives in the one-line format. */
export function parseList(text: string): Archive[] {
  return text.split("\n").flatMap((line) => {
    const match = /^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line);
    return match ? [archive(match[1] ?? "", match[2] ?? "", (match[3] ?? "").trim().split(/\s+/))] : [];
  });
}

/** Archives in the deb822 format. */
export function parseDeb822(text: string): Archive[] {
  const withoutComments = text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n");
  return withoutComments.split(/\n\s*\n/).flatMap((stanza) => {
    const unfolded = stanza.replace(/\n[ \t]+/g, " ");
    const words = (field: string) => new RegExp(`^${field}:[ \\t]*(.*)$`, "im").exec(unfolded)?.[1]?.trim().split(/\s+/) ?? [];
    if (!words("Types").includes("deb") || words("Enabled")[0] === "no") return [];
    return words("URIs").flatMap((uri) => words("Suites").map((suite) => archive(uri, suite, words("Components"))));
  });
}

function archive(uri: string, suite: string, components: string[]): Archive {
  return { uri, suite, components: components.filter((component) => component === "main" || component === "universe") };
}

/** Others offer packages for a release of Ubuntu's there. */
const thirdParties = /^https?:\/\/ppa\.launchpad(content)?\.net\//;

/** The release itself, its security fixes and its updates; no backports and no third parties. */
function isOfSuite({ uri, suite, components }: Archive, codename: string): boolean {
  return !thirdParties.test(uri) && components.length > 0 && [codename, `${codename}-updates`, `${codename}-security`].includes(suite);
}

/** A file of sources. */
export interface SourceFile {
  readonly name: string;
  readonly text: string;
}

function parseAll(files: readonly SourceFile[]): Archive[] {
  return files.flatMap(({ name, text }) => (name.endsWith(".sources") ? parseDeb822(text) : parseList(text)));
}

async function readSourceFiles(): Promise<SourceFile[]> {
  const parts = await readdir(join(folder, "sources.list.d")).catch(() => []);
  const names = ["sources.list", ...parts.filter((name) => /\.(list|sources)$/.test(name)).map((name) => join("sources.list.d", name))];
  const read = async (name: string) => ({ name, text: await readFile(join(folder, name), "utf8").catch(() => "") });
  return Promise.all(names.map(read));
}
