/** Installs QEMU, which emulates a whole machine. That of Debian 12 crashes its guest; there it comes from backports. */
import { loadConfig } from "../../shared/config.ts";
import { run } from "../../systemd/base/run.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { aptInstall, aptInstallFrom, candidateOf } from "../../systemd/setup/apt.ts";
import { findImageSources } from "../../systemd/setup/apt-sources.ts";
import { findProgram } from "../../systemd/setup/programs.ts";
import { ensure, type Step } from "../../systemd/setup/step.ts";

export const emulator = "qemu-system-x86_64";
const emulatorPackage = "qemu-system-x86";
const oldest = 10;
/** A client, and what makes a key. */
const sshPackage = "openssh-client";

const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);

/** A Debian version is "EPOCH:MAJOR.…"; the program says "version MAJOR.…". */
const isUsable = (version: string): boolean => Number(/(?:^\d+:|version )(\d+)\./.exec(version)?.[1] ?? 0) >= oldest;

const installation: Step = {
  title: "Installing the emulator",
  lacks: async () => {
    if (!isUsable(await run([emulator, "--version"]).catch(() => ""))) return `QEMU ${oldest} or later`;
    return findProgram("ssh-keygen") ? undefined : sshPackage;
  },
  provide: async (progress) => {
    if (!findProgram("ssh-keygen")) await aptInstall(administrator, [sshPackage], progress);
    if (isUsable(await candidateOf(emulatorPackage))) return aptInstall(administrator, [emulatorPackage], progress);
    const { suite, archives } = await findImageSources(loadConfig());
    const [archive] = archives;
    if (!archive) throw new Error("this machine has no package sources");
    await aptInstallFrom(administrator, [{ ...archive, suite: `${suite}-backports` }, ...archives], [emulatorPackage], progress);
  },
};

export async function installEmulator(): Promise<void> {
  if (process.arch !== "x64") throw new Error("virtual machines are tested on x86-64 only");
  await ensure(installation, new Terminal(process.stderr));
}
