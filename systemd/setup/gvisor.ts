/**
 * Installs gVisor, which runs strong sandboxes. Debian 12's is too old: its programs cannot keep together what they start, and
 * `ls` fails in it. There it comes from the same archive's Debian 13; it needs no other package.
 */
import type { Config } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import { run } from "../base/run.ts";
import type { Administrator } from "./administrator.ts";
import { aptInstall, aptInstallFrom, candidateOf } from "./apt.ts";
import { findImageSources } from "./apt-sources.ts";
import type { Step } from "./step.ts";

/** The program and its package. */
const runsc = "runsc";
/** As versions say it: a date. */
const oldest = 20_240_101;
const newer = { from: "bookworm", suite: "trixie" };

export function gvisorPackage(config: Config, administrator: Administrator): Step {
  return {
    title: "Installing gVisor",
    lacks: async () => (isUsable(await run([runsc, "--version"]).catch(() => "")) ? undefined : `${runsc} of 2024 or later`),
    provide: async (progress) => {
      if (isUsable(await candidateOf(runsc))) return aptInstall(administrator, [runsc], progress);
      const { suite, archives } = await findImageSources(config);
      const archive = archives.find((one) => one.suite === suite && suite === newer.from);
      if (!archive)
        throw new StartFailure(`This distribution has no ${runsc} of 2024 or later. Please install gVisor: https://gvisor.dev/docs/user_guide/install`);
      await aptInstallFrom(administrator, [{ ...archive, suite: newer.suite }], [runsc], progress);
    },
  };
}

const isUsable = (version: string): boolean => Number(/(\d{8})\.\d+/.exec(version)?.[1] ?? 0) >= oldest;
