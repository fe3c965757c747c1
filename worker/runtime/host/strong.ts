/** Whether this host can run strong sandboxes: under gVisor, whose kernel answers their system calls in place of Linux. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../../../shared/config.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { podman } from "../podman/podman.ts";
import { run } from "../process/run.ts";
import { cgroupVersion } from "./cgroups.ts";
import { probeTimeoutMs } from "./programs.ts";

/** Podman's name for the runtime (`systemd/base/strong-runtime`), and the program with which the worker runs commands. */
export const strongRuntime = "runsc";

export interface StrongProbe {
  readonly works: boolean;
  /** Its version, or what is missing, as operators are told. */
  readonly found: string;
}

const reasonCharsMax = 200;

/**
 * Tries it by running a program in a container, unless this version has worked since the machine was started.
 *
 * @param hasGroups whether control groups limit memory, CPU and processes that Sandgate makes: gVisor's runtime makes none without root
 */
export async function probeStrong({ runtimeDir }: Config, initBinary: string, hasGroups: boolean): Promise<StrongProbe> {
  const { exitCode, stdout: said } = await run(strongRuntime, ["--version"], { timeoutMs: probeTimeoutMs });
  if (exitCode !== 0) return { works: false, found: "runsc (gVisor) is not installed" };
  if (!hasGroups) return { works: false, found: "no control groups limit memory, CPU and processes here" };
  const name = `gVisor ${/(\d{8})\.\d+/.exec(said)?.[1] ?? ""}`.trim();
  const worked = join(dirname(runtimeDir), "strong-worked");
  if (attempt(() => readFileSync(worked, "utf8")) === said) return { works: true, found: name };
  mkdirSync(runtimeDir, { recursive: true, mode: 0o700 });
  const root = mkdtempSync(join(runtimeDir, "strong-"));
  try {
    // Not being the first process, the second one asks for what commands need: a subreaper, which keeps together all they start.
    const nested = ["/init", "--", "/init", "--", "/init", "--version"];
    const groups = cgroupVersion() === "v2" ? ["--cgroups", "disabled"] : [];
    // Its monitor ends it if it is still there when nobody waits for it any more.
    const bounded = ["--timeout", String(probeTimeoutMs / 1_000)];
    const options = [...groups, ...bounded, "--network", "none", "--log-driver", "none", "--pull", "never", "--volume", `${initBinary}:/init:ro`];
    const result = await podman(["run", "--rm", "--runtime", strongRuntime, ...options, "--rootfs", root, ...nested], probeTimeoutMs);
    if (result.exitCode === 0) {
      writeFileSync(worked, said);
      return { works: true, found: name };
    }
    if (/child-reaper/.test(result.stderr)) return { works: false, found: `${name} is too old: 2024 or later is needed` };
    const reason = result.timedOut ? `it ran no program in ${probeTimeoutMs / 1_000} seconds` : result.stderr.trim().slice(-reasonCharsMax);
    return { works: false, found: `${name} does not work: ${reason}` };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
