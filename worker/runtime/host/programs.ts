/** Which programs are installed, and which of them are used for sandboxes. */
import { podman } from "../podman/podman.ts";
import { type RunResult, run } from "../process/run.ts";
import { type Host, HostUnfit } from "./host.ts";

/** The most time that one probe may take. */
export const probeTimeoutMs = 60_000;

async function version(program: string): Promise<string | undefined> {
  return versionIn(await run(program, ["--version"], { timeoutMs: probeTimeoutMs }));
}

/** Undefined when it is not installed. */
export const podmanVersion = async (): Promise<string | undefined> => versionIn(await podman(["--version"]));

function versionIn(result: RunResult): string | undefined {
  return result.exitCode === 0 ? /\d+(\.\d+)+/.exec(result.stdout)?.[0] : undefined;
}

/** @throws {HostUnfit} */
export async function ociRuntime(): Promise<{ runtime: Host["runtime"]; runtimeVersion: string }> {
  for (const runtime of ["crun", "runc"] as const) {
    const runtimeVersion = await version(runtime);
    if (runtimeVersion) return { runtime, runtimeVersion };
  }
  throw new HostUnfit("neither crun nor runc is installed");
}

export async function outboundNetwork(): Promise<string> {
  if (await version("slirp4netns")) return "slirp4netns:enable_ipv6=false,allow_host_loopback=false";
  if (await version("pasta")) return "pasta:--ipv4-only,--no-map-gw";
  throw new HostUnfit("neither slirp4netns nor pasta (passt) is installed");
}

/** @throws {HostUnfit} */
export async function sizeOfPage(): Promise<number> {
  const result = await run("getconf", ["PAGESIZE"], { timeoutMs: probeTimeoutMs });
  if (result.exitCode !== 0) throw new HostUnfit("getconf does not tell the size of a page of memory");
  return Number(result.stdout);
}
