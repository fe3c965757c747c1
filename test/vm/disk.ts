/** Disks of virtual machines: Debian with a kernel of its own, and the package of Sandgate unpacked. */
import { cpSync, globSync, mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { run } from "../../systemd/base/run.ts";
import { builtOnce, makeDebian, servicePackages } from "../host/debian.ts";

const diskBytes = 6 * 1024 ** 3;
/** What makes it a machine that is reached by ssh, has an image of its own, and can run strong sandboxes and take their memory. */
const packages = [
  ...servicePackages,
  "linux-image-cloud-amd64",
  "initramfs-tools",
  "udev",
  "kmod",
  "procps",
  "openssh-server",
  "busybox-static",
  "criu",
  "runsc",
].sort();
const network = "[Match]\nName=en*\n[Network]\nDHCP=yes\n";
/** Started for others than Sandgate. Each would take seconds of the machine's start. */
const unwanted = ["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "netavark-dhcp-proxy.service"];
/** While it starts, clients try in vain, for which the server would shut them out. */
const server = "PerSourcePenalties no\n";
/** What a service may take on a fast machine is not enough here. */
const patience = "[Service]\nWatchdogSec=600\nTimeoutStartSec=1800\n";
const patientUnits = ["sandgate-nats.service", "sandgate-worker.service", "sandgate-gateway@.service"];
/** Where gVisor is until a test puts it in its place: the worker tries it at each start, which takes a minute here. */
export const strongRuntimeAside = "/opt/runsc";
const hostKey = "etc/ssh/ssh_host_ed25519_key.pub";

/** The files of a virtual machine. */
export interface Files {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
  /** With which root logs in. */
  readonly key: string;
  /** The public half of the machine's own key. */
  readonly hostKey: string;
}

/** A disk to be changed, and what is needed to start from it, in a folder. */
export async function makeFiles(folder: string, program: string): Promise<Files> {
  const base = await builtOnce("virtual-machines", [packages, network, server, unwanted, patience, strongRuntimeAside], makeBase);
  const [root, disk] = [join(folder, "root"), join(folder, "disk.img")];
  await run(["cp", "-a", "--reflink=auto", join(base, "root"), root]);
  // On this machine's own processor, which takes seconds instead of minutes.
  cpSync(program, join(root, "var/tmp", basename(program)));
  await run(["chroot", root, "dpkg", "--install", "--ignore-depends=mmdebstrap", join("/var/tmp", basename(program))]);
  writeFileSync(disk, "");
  truncateSync(disk, diskBytes);
  await run(["mkfs.ext4", "-q", "-d", root, disk]);
  rmSync(root, { recursive: true });
  return { disk, kernel: join(base, "vmlinuz"), initrd: join(base, "initrd.img"), key: join(base, "key"), hostKey: join(base, "root", hostKey) };
}

async function makeBase(partial: string): Promise<void> {
  const root = join(partial, "root");
  mkdirSync(partial, { mode: 0o700 });
  await makeDebian(root, packages);
  for (const name of ["vmlinuz", "initrd.img"]) cpSync(firstOf(join(root, "boot", `${name}-*`)), join(partial, name));
  writeFileSync(join(root, "etc/systemd/network/dhcp.network"), network);
  writeFileSync(join(root, "etc/ssh/sshd_config.d/tests.conf"), server);
  await run(["systemctl", `--root=${root}`, "enable", "systemd-networkd.service", "ssh.service"]);
  await run(["systemctl", `--root=${root}`, "mask", ...unwanted]);
  for (const unit of patientUnits) {
    mkdirSync(join(root, "etc/systemd/system", `${unit}.d`));
    writeFileSync(join(root, "etc/systemd/system", `${unit}.d`, "patience.conf"), patience);
  }
  renameSync(join(root, "usr/bin/runsc"), join(root, strongRuntimeAside));
  const key = join(partial, "key");
  await run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]);
  mkdirSync(join(root, "root/.ssh"), { recursive: true, mode: 0o700 });
  cpSync(`${key}.pub`, join(root, "root/.ssh/authorized_keys"));
}

function firstOf(pattern: string): string {
  const [path] = globSync(pattern);
  if (!path) throw new Error(`there is no ${pattern}`);
  return path;
}
