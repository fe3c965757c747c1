/** Trees of files in sandboxes: one program there makes every kind of file, another describes everything that there is. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Api } from "./api.ts";
import { download } from "./files.ts";

const describeProgram = `
import hashlib, os, stat, sys
left_out = {b"/proc", b"/sys", b"/dev", b"/run", b"/etc/hosts", b"/etc/hostname", b"/etc/resolv.conf", b"/etc/mtab"}
first_names, lines = {}, []
zeros = bytes(1 << 20)
of_image = (b"/usr/bin/", b"/usr/lib/", b"/usr/sbin/", b"/usr/share/")
def sha256(path, size):
    """Of each block that is not all zeros, with its place: the size says the rest, and gigabytes of holes cost nothing."""
    digest, at = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while at < size:
            try: at = os.lseek(file.fileno(), at, os.SEEK_DATA) // len(zeros) * len(zeros)
            except OSError: break # Nothing but a hole is left.
            block = os.pread(file.fileno(), len(zeros), at)
            if block != zeros[:len(block)]:
                digest.update(b"%d:" % at)
                digest.update(block)
            at += len(zeros)
    return digest.hexdigest()
def describe(path):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    parts = [path, oct(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns]
    # What only the image has is in no snapshot: size and time show that it is that file.
    is_read = not path.startswith(of_image)
    if is_read: parts.append(sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False)))
    if kind != stat.S_IFDIR and st.st_nlink > 1: parts += [st.st_nlink, first_names.setdefault((st.st_dev, st.st_ino), path)]
    if kind == stat.S_IFLNK: parts.append(os.readlink(path))
    if kind == stat.S_IFREG:
        allocated = st.st_blocks * 512
        parts.append(st.st_size)
        if is_read: parts += [sha256(path, st.st_size), "holes of %d/4 MiB" % round(4 * (st.st_size - allocated) / (1 << 20)) if allocated < st.st_size else "whole"]
    lines.append(repr(parts))
    if kind == stat.S_IFDIR:
        for name in sorted(os.listdir(path)):
            below = os.path.join(path, name)
            if below not in left_out: describe(below)
sys.setrecursionlimit(10000)
describe(b"/")
with open(sys.argv[1], "w") as out: out.write("\\n".join(lines))
`;

/** Describes every file in a sandbox, one line each, except files that differ in every container. */
export async function describeSandbox(api: Api, id: string): Promise<string[]> {
  const file = `/dev/shm/${randomBytes(6).toString("hex")}`;
  await runPython(api, id, describeProgram, file);
  const { status, body } = await download(api, id, file);
  assert.equal(status, 200);
  await api.execute(id, `rm ${file}`);
  return body.toString().split("\n");
}

/** The differences between two descriptions; none if they are equal. */
export function differences(expected: readonly string[], found: readonly string[]): string[] {
  const [before, after] = [new Set(expected), new Set(found)];
  return [...expected.filter((line) => !after.has(line)).map((line) => `- ${line}`), ...found.filter((line) => !before.has(line)).map((line) => `+ ${line}`)];
}

export async function assertSameFiles(api: Api, id: string, expected: readonly string[]): Promise<void> {
  assert.deepEqual(differences(expected, await describeSandbox(api, id)), []);
}

/** Runs a program in the sandbox; the call itself leaves nothing there. */
export async function runPython(api: Api, id: string, program: string, ...args: string[]): Promise<string> {
  const { exit_code, stdout, stderr } = await api.execute(id, pythonCommand(program, ...args), { timeout: 280 });
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

/** The command that runs a program. */
export const pythonCommand = (program: string, ...args: string[]): string => ["python3", "-B", "-c", quoted(program), ...args].join(" ");

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const makeProgram = `
import os, shutil, socket
base = b"/root/tree"
os.makedirs(base)
os.chdir(base)
def write(name, content=b"content", mode=None, owner=None, mtime=None):
    with open(name, "wb") as file: file.write(content)
    if owner: os.chown(name, *owner)
    if mode is not None: os.chmod(name, mode)
    if mtime: os.utime(name, ns=(mtime, mtime))
write(b"regular", b"x" * 100000)
write(b"empty", b"")
for mode in (0o4755, 0o2755, 0o6711, 0o1644, 0o000, 0o777, 0o444): write(b"mode-%o" % mode, mode=mode)
for uid, gid in ((1, 1), (33, 65534), (1000, 100), (65534, 0), (12345, 54321)): write(b"owner-%d-%d" % (uid, gid), owner=(uid, gid), mode=0o640)
for mtime in (1, 123456789, 10**9, 1700000000123456789, 4102444800999999999): write(b"mtime-%d" % mtime, mtime=mtime)
for name in (b"a space", b" leading", b"trailing ", b"new\\nline", b"-rf", b"--help", "gr\\u00fc\\u00df-\\u65e5\\u672c".encode(), b"\\xff\\xfe", b"quo'te\\"", b"back\\\\slash", b"n" * 255): write(name)
os.symlink(b"regular", b"link-relative")
os.symlink(b"/etc/passwd", b"link-absolute")
os.symlink(b"nowhere/at/all", b"link-dangling")
os.symlink(b"t" * 3000, b"link-long")
os.chown(b"link-dangling", 5, 6, follow_symlinks=False)
os.utime(b"link-dangling", ns=(7, 7000000001), follow_symlinks=False)
write(b"hard-1")
os.makedirs(b"folders/other")
for name in (b"hard-2", b"folders/hard-3", b"folders/other/hard-4"): os.link(b"hard-1", name)
os.link(b"link-long", b"folders/hard-link-to-link", follow_symlinks=False)
os.mkfifo(b"fifo", 0o620)
os.chown(b"fifo", 33, 33)
server = socket.socket(socket.AF_UNIX)
server.bind(b"socket")
os.chmod(b"socket", 0o751)
with open(b"sparse", "wb") as file:
    for at in (3 << 20, 50 << 20):
        file.seek(at)
        file.write(os.urandom(1 << 20))
    file.truncate(80 << 20)
with open(b"hole", "wb") as file: file.truncate(16 << 20)
write(b"attributes")
for name, value in (("user.text", b"value"), ("user.binary", bytes(range(256))), ("user.empty", b""), ("user.overlay.opaque", b"y")): os.setxattr(b"attributes", name, value)
for mode in (0o700, 0o1777, 0o2775, 0o555): os.mkdir(b"folder-%o" % mode); os.chmod(b"folder-%o" % mode, mode)
os.mkdir(b"folder-owned")
os.setxattr(b"folder-owned", "user.folder", b"1")
os.chown(b"folder-owned", 1000, 1001)
os.utime(b"folder-owned", ns=(1, 1234567890123456789))
deep = b"deep/" + b"/".join([b"d" * 60] * 20)
os.makedirs(deep)
write(deep + b"/file")
os.remove("/etc/issue")
shutil.rmtree("/etc/cron.d", ignore_errors=True)
shutil.rmtree("/etc/apt/apt.conf.d")
os.mkdir("/etc/apt/apt.conf.d")
write("/etc/apt/apt.conf.d/made-anew")
shutil.rmtree("/usr/share/doc")
write("/usr/share/doc", b"a file where a folder was")
os.remove("/etc/debian_version")
os.mkdir("/etc/debian_version")
with open("/etc/profile", "a") as file: file.write("# changed")
os.chmod("/etc/shells", 0o600)
os.chown("/etc/shells", 8, 9)
os.setxattr("/etc/login.defs", "user.note", b"of the image")
os.rename("/etc/bash.bashrc", "/root/moved")
os.setxattr("/", "user.root", b"folder")
os.chmod("/", 0o751)
os.utime("/", ns=(1, 1111111111123456789))
`;

/** Makes every kind of file, and changes and removes files of the image; the very top folder is changed, too. */
export async function makeEveryKind(api: Api, id: string): Promise<void> {
  await runPython(api, id, makeProgram);
}
