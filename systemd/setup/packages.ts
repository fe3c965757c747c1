/** The Debian packages that the product needs, found by their programs and installed by apt when missing. */
import type { Config } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import { runsHere } from "../base/instance.ts";
import type { Administrator } from "./administrator.ts";
import { aptInstall, aptInstallFrom, aptUpdate, hasCandidates } from "./apt.ts";
import { furtherArchives } from "./apt-sources.ts";
import { findProgram, hasSystemd } from "./programs.ts";
import type { Step } from "./step.ts";

interface Need {
  readonly package: string;
  /** Files or programs. If any of them exists, the package is installed. */
  readonly anyOf: readonly string[];
  /** Installed only if the distribution has it and another package is being installed anyway. */
  readonly optional?: true;
}

const forSandboxes: readonly Need[] = [
  { package: "podman", anyOf: ["podman"] },
  { package: "crun", anyOf: ["crun"] },
  { package: "uidmap", anyOf: ["newuidmap"] },
  { package: "slirp4netns", anyOf: ["slirp4netns"] },
  { package: "passt", anyOf: ["pasta"], optional: true },
  { package: "fuse-overlayfs", anyOf: ["fuse-overlayfs"] },
  { package: "catatonit", anyOf: ["catatonit", "/usr/libexec/podman/catatonit", "/usr/libexec/catatonit/catatonit"] },
  { package: "tini", anyOf: ["tini-static"] },
  { package: "perl-base", anyOf: ["perl"] },
  { package: "tar", anyOf: ["tar"] },
  { package: "zstd", anyOf: ["zstd"] },
  { package: "nftables", anyOf: ["nft"] },
  { package: "iproute2", anyOf: ["ip"] },
];
const always: readonly Need[] = [
  { package: "util-linux", anyOf: ["setpriv"] },
  { package: "passwd", anyOf: ["useradd"] },
  { package: "curl", anyOf: ["curl"], optional: true }, // for trying out the calls that the start prints at its end
  { package: "ca-certificates", anyOf: ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"] },
];
/** Makes the certificate of the NATS server. */
const openssl: Need = { package: "openssl", anyOf: ["openssl"] };
const natsServer: Need = { package: "nats-server", anyOf: ["nats-server"] };
/** Gives the service account a session bus, without which systemd delegates no cgroup to its containers. */
const sessionBus: Need = { package: "dbus-user-session", anyOf: ["/usr/lib/systemd/user/dbus.socket", "/usr/lib/systemd/user/dbus-broker.service"] };
/** Takes snapshots with the processes of sandboxes, where systemd runs the services. Not every distribution has it. */
const criu: Need = { package: "criu", anyOf: ["criu"], optional: true };
const btrfs: Need = { package: "btrfs-progs", anyOf: ["mkfs.btrfs"] };
const imageBuilder: Need = { package: "mmdebstrap", anyOf: ["mmdebstrap"] };
/** Tests use it to check what a snapshot keeps of a file. */
const attributes: Need = { package: "attr", anyOf: ["setfattr"] };
/** Moves the clock of a part in tests, and no other. */
const clock: Need = { package: "faketime", anyOf: ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`) };
/** Tests start the product as a user who has it. */
const sudo: Need = { package: "sudo", anyOf: ["sudo"] };
const browser: readonly Need[] = [
  { package: "chromium-headless-shell", anyOf: ["chromium-headless-shell"] },
  { package: "fonts-dejavu-core", anyOf: ["/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"] },
  { package: "fonts-inter", anyOf: ["/usr/share/fonts/opentype/inter", "/usr/share/fonts/truetype/inter"], optional: true },
];

/** The packages needed to run Sandgate. */
export function systemPackages(config: Config, { hasVolume }: { readonly hasVolume: boolean }, administrator: Administrator): Step {
  const forWorker = [...forSandboxes, ...(hasVolume ? [btrfs] : []), ...(hasSystemd() ? [sessionBus, criu] : [])];
  const needs = [...always, ...(runsHere(config, "worker") ? forWorker : []), ...(runsHere(config, "nats") ? [natsServer, openssl] : [])];
  return installation("Installing system packages", needs, administrator);
}

/** The names of all that `systemPackages` may install where systemd runs. */
export const systemPackageNames = [...always, ...forSandboxes, btrfs, natsServer, openssl, sessionBus].map((need) => need.package);

/** What the Debian package asks for: everything that any role needs but the NATS server, which most machines of a fleet do without. */
export function packagedNeeds(): { readonly depends: readonly string[]; readonly recommends: readonly string[] } {
  const names = (needs: readonly Need[]): string[] => needs.map((need) => need.package);
  const needs = [...always, ...forSandboxes, btrfs, openssl, sessionBus, criu, imageBuilder];
  return { depends: names(needs.filter(({ optional }) => !optional)), recommends: names(needs.filter(({ optional }) => optional)) };
}

/** The package needed to build the default image. */
export function imageBuildingPackages(administrator: Administrator): Step {
  return installation("Installing the image builder", [imageBuilder], administrator);
}

/** What only `npm run bench` needs. */
export function benchPackages(administrator: Administrator): Step {
  return installation(
    "Installing what the bench needs",
    ["wrk", "curl"].map((name) => ({ package: name, anyOf: [name] })),
    administrator,
  );
}

/** What only the tests need, and what they use without the set-up that would install it. */
export function testPackages(administrator: Administrator): Step {
  return installation("Installing what the tests need", [...browser, attributes, btrfs, clock, sudo], administrator);
}

function installation(title: string, needs: readonly Need[], administrator: Administrator): Step {
  const missing = () => needs.filter((need) => !need.anyOf.some(findProgram));
  const required = () =>
    missing()
      .filter((need) => !need.optional)
      .map((need) => need.package);
  return {
    title,
    lacks: async () => required().join(", ") || undefined,
    provide: async (progress) => {
      if (!findProgram("apt-get")) throw new StartFailure(`This machine has no apt-get. Please install: ${programList(missing())}`);
      const natsIsNew = missing().includes(natsServer);
      const optional = missing()
        .filter((need) => need.optional)
        .map((need) => need.package);
      if (!(await hasCandidates(required()))) await aptUpdate(administrator, progress);
      const available = [];
      for (const name of optional) if (await hasCandidates([name])) available.push(name);
      const packages = [...required(), ...available];
      const [first, ...rest] = (await hasCandidates(packages)) ? [] : await furtherArchives();
      if (first) await aptInstallFrom(administrator, [first, ...rest], packages, progress);
      else await aptInstall(administrator, packages, progress);
      if (natsIsNew) await stopPackagedNats(administrator);
    },
  };
}

function programList(needs: readonly Need[]): string {
  return needs.map((need) => `${need.package} (${need.anyOf[0]})`).join(", ");
}

/** Debian starts the packaged server at once, open to every local user; Sandgate runs its own server with authentication. */
async function stopPackagedNats(administrator: Administrator): Promise<void> {
  if (hasSystemd()) await administrator.run("stop the packaged NATS service", ["systemctl", "disable", "--now", "nats-server.service"]);
}
