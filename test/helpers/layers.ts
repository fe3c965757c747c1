/** Folders with every kind of file that a layer can hold, and complete descriptions of folders to compare. */
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { execa } from "execa";

/** What an overlay leaves in its upper folder when a sandbox has removed and replaced things. */
const overlayScript = `
set -e
mkdir -p lower/removed lower/replaced work merged
echo old > lower/file; echo old > lower/copied; echo x > lower/removed/x; echo y > lower/replaced/y
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr merged
rm merged/file; rm -r merged/removed merged/replaced; mkdir merged/replaced; chmod 600 merged/copied
echo new > merged/replaced/new
umount merged
`;

/** One name of 255 bytes, and names that a careless archive would change. */
const names = ["n".repeat(255), "-dash", "a\nb", " space ", "a=b%3D", "back\\slash", "umläut-€", Buffer.from([0xff, 0xfe, 0x62])] as const;
const capability = "0x0100000200040000000000000000000000000000";
const accessList = "0x0200000001000600ffffffff02000700e803000004000400ffffffff10000700ffffffff20000400ffffffff";

/** Makes `base`/upper. Only as root, of the machine or of a namespace. */
export async function makeLayer(base: string): Promise<string> {
  const dir = join(base, "upper");
  mkdirSync(dir, { recursive: true });
  await execa("unshare", ["--mount", "sh", "-c", overlayScript], { cwd: base });
  for (const name of ["names", "links", "empty", "deep", "attributes", "holes"]) mkdirSync(join(dir, name));
  for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${dir}/names/`), Buffer.from(name)]), name);
  mkdirSync(join(dir, "deep", ...Array.from({ length: 20 }, () => "d".repeat(50))), { recursive: true });
  makeLinks(join(dir, "links"));
  makeHoles(join(dir, "holes"));
  await makeAttributes(join(dir, "attributes"));
  await setTimes(dir);
  return dir;
}

function makeLinks(dir: string): void {
  for (const [name, target] of Object.entries({ absolute: "/etc/passwd", up: "../../..", dangling: "nowhere", long: "t".repeat(1_000) })) {
    symlinkSync(target, join(dir, name));
  }
}

function makeHoles(dir: string): void {
  for (const name of ["none", "middle", "end"]) writeFileSync(join(dir, name), "");
  truncateSync(join(dir, "none"), 64 * 1024 * 1024);
  for (const name of ["middle", "end"]) writeSync(openSync(join(dir, name), "r+"), Buffer.alloc(1024 * 1024, name), 0, undefined, 40 * 1024 * 1024);
  truncateSync(join(dir, "middle"), 80 * 1024 * 1024);
}

async function makeAttributes(dir: string): Promise<void> {
  const modes = { setuid: 0o6755, none: 0, sticky: 0o1777, owned: 0o640, capable: 0o755, listed: 0o674, noted: 0o644 };
  for (const [name, mode] of Object.entries(modes)) {
    writeFileSync(join(dir, name), name);
    if (name === "owned") chownSync(join(dir, name), 1_000, 1_001);
    chmodSync(join(dir, name), mode);
  }
  const script = `
    set -e
    mkfifo -m 620 fifo; mknod whiteout c 0 0; ln whiteout whiteout2; ln noted noted2; ln noted ../links/noted3
    chown 33:65534 fifo; chown -h 12:34 ../links/dangling; ln ../links/long ../links/long2; mkdir shared; chmod 2775 shared
    setfattr -n user.note -v 0x000a3dff noted; setfattr -n user.a=b -v c noted; setfattr -n user.note -v folder shared
    setfattr -n security.capability -v ${capability} capable; setfattr -n system.posix_acl_access -v ${accessList} listed
    setfattr -n system.posix_acl_default -v ${accessList} shared
  `;
  await execa("sh", ["-c", script], { cwd: dir });
}

async function setTimes(dir: string): Promise<void> {
  const set = (when: string, ...paths: string[]) => execa("touch", ["--no-dereference", "--date", when, ...paths], { cwd: dir });
  await set("2001-02-03 04:05:06.123456789 UTC", "attributes/owned", "links/absolute", "links/dangling", "attributes/whiteout", "attributes/fifo");
  await set("1965-01-01 00:00:00.000000001 UTC", "attributes/noted", "holes/none");
  await set("2020-12-31 23:59:59.999999999 UTC", "empty", "links", "attributes", ".");
}

/** Describes a folder and everything below it, one line for each file: any difference between two folders shows up here. */
export async function describeFolder(dir: string): Promise<string[]> {
  const lines: string[] = [];
  const inodes = new Map<bigint, string>();
  const describe = (path: Buffer): void => {
    const name = path.toString("latin1").slice(dir.length) || "/";
    const stat = lstatSync(path, { bigint: true });
    const first = inodes.get(stat.ino) ?? name;
    inodes.set(stat.ino, first);
    // Links among devices, such as whiteouts, say nothing.
    const links = stat.isFile() || stat.isSymbolicLink() ? [stat.nlink, first] : [];
    const common = [stat.mode.toString(8), stat.uid, stat.gid, stat.mtimeNs, stat.rdev, ...links];
    const content = stat.isFile() ? [stat.size, sha256(path), stat.blocks >> 11n] : stat.isSymbolicLink() ? [readlinkSync(path)] : [];
    lines.push([name, ...common, ...content].join(" "));
    if (!stat.isDirectory()) return;
    for (const entry of readdirSync(path, { encoding: "buffer" }).sort(Buffer.compare)) describe(Buffer.concat([path, Buffer.from("/"), entry]));
  };
  describe(Buffer.from(dir));
  return [...lines, ...(await attributesOf(dir))];
}

const sha256 = (path: Buffer): string => createHash("sha256").update(readFileSync(path)).digest("hex");

async function attributesOf(dir: string): Promise<string[]> {
  const { stdout } = await execa("getfattr", ["-R", "-P", "-h", "-d", "-m", "-", "-e", "hex", "."], { cwd: dir });
  return stdout.split("\n\n").sort();
}
