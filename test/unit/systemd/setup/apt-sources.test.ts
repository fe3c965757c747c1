/** Package sources as Debian 12, Debian 13 and Ubuntu 24.04 have them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { imageSources, sourceLine, suiteOf } from "../../../../systemd/setup/apt-sources.ts";

const bookworm = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n';
const noble = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=noble\n';
const mint = 'NAME="Linux Mint"\nID=linuxmint\nVERSION_CODENAME=wilma\n';

const ubuntuSources = (components: string): string => `# See http://help.ubuntu.com/community/UpgradeNotes
Types: deb
URIs: http://de.archive.ubuntu.com/ubuntu/
Suites: noble noble-updates noble-backports
Components: ${components}
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg

Types: deb
URIs: http://security.ubuntu.com/ubuntu/
Suites: noble-security
Components: ${components}
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
`;

const lines = (...args: Parameters<typeof imageSources>): string[] => imageSources(...args).archives.map(sourceLine);
const ubuntuLines = [
  "deb http://de.archive.ubuntu.com/ubuntu/ noble main universe",
  "deb http://de.archive.ubuntu.com/ubuntu/ noble-updates main universe",
  "deb http://security.ubuntu.com/ubuntu/ noble-security main universe",
];

test("the release is that of Debian or Ubuntu; others are taken for Debian stable", () => {
  assert.deepEqual([bookworm, noble, mint, ""].map(suiteOf), ["bookworm", "noble", "stable", "stable"]);
});

test("on Ubuntu, packages come from main and universe of its own archive, also where the machine has only main", () => {
  for (const components of ["main restricted universe multiverse", "main restricted"]) {
    assert.deepEqual(lines(noble, [{ name: "sources.list.d/ubuntu.sources", text: ubuntuSources(components) }]), ubuntuLines);
  }
  const oneLine = { name: "sources.list", text: "deb http://archive.ubuntu.com/ubuntu noble main restricted # of the installer\n" };
  assert.deepEqual(lines(noble, [oneLine]), ["deb http://archive.ubuntu.com/ubuntu noble main universe"]);
});

test("archives of third parties for the same release are left out", () => {
  const others = [
    {
      name: "sources.list.d/own.sources",
      text: "Types: deb\nURIs: https://ppa.launchpadcontent.net/somebody/tools/ubuntu/\nSuites: noble\nComponents: main\n",
    },
    {
      name: "sources.list.d/docker.list",
      text: "deb [arch=amd64 signed-by=/etc/apt/keyrings/docker.asc] https://download.docker.com/linux/ubuntu noble stable\n",
    },
  ];
  assert.deepEqual(lines(noble, [{ name: "sources.list.d/ubuntu.sources", text: ubuntuSources("main") }, ...others]), ubuntuLines);
});

test("a machine without sources gets those of its distribution, and a mirror in the settings takes their place", () => {
  assert.match(lines(noble, []).join(), /^deb http:\/\/(archive|ports)\.ubuntu\.com\/ubuntu(-ports)? noble main universe$/);
  assert.deepEqual(lines(bookworm, []), ["deb http://deb.debian.org/debian bookworm main"]);
  assert.deepEqual(lines(mint, []), ["deb http://deb.debian.org/debian stable main"]);
  assert.deepEqual(lines(noble, [], "http://mirror.lan/ubuntu"), ["deb http://mirror.lan/ubuntu noble main universe"]);
  assert.deepEqual(lines(bookworm, [], "http://mirror.lan/debian"), ["deb http://mirror.lan/debian bookworm main"]);
});

test("Debian's own sources stay as they are", () => {
  const text = "deb http://deb.debian.org/debian bookworm main contrib\ndeb http://security.debian.org bookworm-security main\n";
  assert.deepEqual(lines(bookworm, [{ name: "sources.list", text }]), [
    "deb http://deb.debian.org/debian bookworm main",
    "deb http://security.debian.org bookworm-security main",
  ]);
});
