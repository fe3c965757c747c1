/** System calls that no sandbox may make, each with arguments that a kernel without a filter would answer otherwise where it can. */
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, probe, probeOne } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const attempts: Record<string, string> = {
  "adds a kernel key": 'call("add_key", b"user", b"mine", b"x", 1, -3)',
  "asks the kernel for a key": 'call("request_key", b"user", b"mine", None, 0)',
  "makes a session keyring": 'call("keyctl", 1, None)',
  "sets up io_uring": 'call("io_uring_setup", 4, bytes(120))',
  "enters io_uring": 'call("io_uring_enter", 0, 0, 0, 0, None, 0)',
  "registers with io_uring": 'call("io_uring_register", 0, 0, None, 0)',
  "takes slots of asynchronous I/O, which the machine shares": 'call("io_setup", 128, bytes(8))',
  "handles page faults itself (userfaultfd)": 'call("userfaultfd", 1)',
  "hides memory from the kernel (memfd_secret)": 'call("memfd_secret", 0)',
  "loads a program into the kernel (bpf)": 'call("bpf", 5, bytes(128), 128)',
  "counts events of the kernel (perf_event_open)": 'call("perf_event_open", bytes(128), 0, -1, -1, 0)',
  "loads a kernel to boot": 'call("kexec_load", 0, 0, None, 0)',
  "loads a kernel to boot from a file": 'call("kexec_file_load", -1, -1, 0, None, 0)',
  "loads a kernel module from memory": 'call("init_module", bytes(8), 8, b"")',
  "loads a kernel module from a file": 'call("finit_module", -1, b"", 0)',
  "removes a kernel module": 'call("delete_module", b"none", 0)',
  "reads quotas": 'call("quotactl", 0x80000700, b"/dev/vda", 0, bytes(128))',
  "reads quotas by a descriptor": 'call("quotactl_fd", os.open("/", 0), 0x80000700, 0, bytes(128))',
  "makes a file handle": 'call("name_to_handle_at", -100, b"/etc/passwd", struct.pack("I", 128) + bytes(132), bytes(8), 0)',
  "opens a file by its handle": 'call("open_by_handle_at", os.open("/", 0), struct.pack("Ii", 8, 1) + bytes(8), 0)',
  "reads the host's kernel log": 'call("syslog", 3, bytes(64), 64)',
  "reboots the machine": 'call("reboot", 0xfee1dead, 672274793, 0, 0)',
  "turns swap on": 'call("swapon", b"/dev/null", 0)',
  "turns swap off": 'call("swapoff", b"/dev/null")',
  "sets the clock": 'call("settimeofday", bytes(16), None)',
  "sets the clock by its id": 'call("clock_settime", 0, bytes(16))',
  "adjusts the clock": 'call("adjtimex", bytes(256))',
  "changes the host's name": 'call("sethostname", b"changed", 7)',
  "changes the host's domain": 'call("setdomainname", b"changed", 7)',
  "writes accounting of processes": 'call("acct", b"/tmp/acct")',
  "hangs terminals up": 'call("vhangup")',
  "watches whole file systems (fanotify)": 'call("fanotify_init", 0x200, 0)',
  "compares resources of processes (kcmp)": 'call("kcmp", os.getpid(), os.getpid(), 0, 0, 0)',
  "maps its pages into a pipe (vmsplice)": 'call("vmsplice", os.pipe()[1], None, 0, 0)',
  "mounts with the newer calls": 'call("fsopen", b"tmpfs", 0)',
  "mounts what it has set up": 'call("fsmount", -1, 0, 0)',
  "changes a mount with the newer calls": 'call("fspick", -100, b"/", 0)',
  "copies a mount": 'call("open_tree", -100, b"/", 1)',
  "moves a mount": 'call("move_mount", -1, b"", -1, b"", 0)',
  "changes the attributes of a mount": 'call("mount_setattr", -100, b"/", 0, bytes(32), 32)',
  "makes its memory executable by another personality": 'call("personality", 0x0400000)',
  "makes the first page mappable by another personality": 'call("personality", 0x0100000)',
  "types into a terminal (TIOCSTI)": 'call("ioctl", os.openpty()[1], 0x5412, b"x")',
  "types into a terminal, with bits that the kernel ignores": 'call("ioctl", os.openpty()[1], 0x5412 | 1 << 32, b"x")',
  "types into a console (TIOCLINUX)": 'call("ioctl", os.openpty()[1], 0x541c, b"\\2")',
  "loads a line discipline (TIOCSETD)": 'call("ioctl", os.openpty()[1], 0x5423, struct.pack("i", 0))',
  "gets rid of the filter by tracing without it": `
pid = os.fork()
if pid == 0: time.sleep(60)
try: call("ptrace", 0x4206, pid, None, 0x00200000)
finally: os.kill(pid, 9)`,
};
const attemptsOfX64: Record<string, string> = {
  "gets at I/O ports (iopl)": 'call("iopl", 3)',
  "gets at one I/O port (ioperm)": 'call("ioperm", 0x80, 1, 1)',
  "changes its segments (modify_ldt)": 'call("modify_ldt", 0, bytes(64), 64)',
};
const all = { ...attempts, ...(process.arch === "x64" ? attemptsOfX64 : {}) };

const id = await sandboxes.make();
const outcomes = await probe(api, id, all);

for (const name of Object.keys(all)) {
  test(name, () => expectRefused(outcomes[name], "EPERM", "ENOSYS"));
}

/** Through the gate for 32-bit programs; registers as that has them. */
const byInterrupt: Record<string, string> = {
  "makes a 32-bit system call (getpid)": "b8 14 00 00 00 cd 80 c3",
  "makes a 32-bit socketcall": "53 b8 66 00 00 00 bb 01 00 00 00 31 c9 cd 80 5b c3",
};
for (const [name, code] of Object.entries(byInterrupt)) {
  test(name, { skip: process.arch === "x64" ? false : "x86 alone has it" }, async () => {
    // A kernel without 32-bit programs answers the interrupt with a segmentation fault.
    expectRefused(await probeOne(api, id, `result = machine_code(bytes.fromhex("${code}"))`), "SIGSYS", "SIGSEGV");
  });
}

test("makes a call of the x32 kind", { skip: process.arch === "x64" ? false : "x86 alone has it" }, async () => {
  expectRefused(await probeOne(api, id, "result = call(0x40000000 | 39)"), "SIGSYS", "ENOSYS");
});

test("runs a 32-bit program", { skip: process.arch === "x64" ? false : "x86 alone has it" }, async () => {
  // An ELF file of 32 bits whose only code is exit(7).
  const script = `
code = bytes.fromhex("b801000000bb07000000cd80")
header = b"\\x7fELF\\1\\1\\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
segment = struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0x8048000, 84 + len(code), 84 + len(code), 5, 4096)
with open("/tmp/program32", "wb") as file: file.write(header + segment + code)
os.chmod("/tmp/program32", 0o755)
os.execv("/tmp/program32", ["program32"])`;
  expectRefused(await probeOne(api, id, script), "SIGSYS", "SIGSEGV", "ENOEXEC");
});
