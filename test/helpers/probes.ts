/**
 * Attacks as a program in a sandbox tries them: pieces of Python, each in a process of its own, that report what became
 * of them. What was not tried counts as an error, never as refused.
 */
import assert from "node:assert/strict";
import type { Api } from "./api.ts";

/**
 * What became of an attempt: it worked, the kernel answered with an error number or ended its process, or it was not
 * tried because of a mistake in it.
 */
export type Outcome = { readonly done: unknown } | { readonly errno: string } | { readonly signal: string } | { readonly error: string };

/** Numbers of system calls on x86-64 and arm64. */
const numbers: Record<string, readonly [number | undefined, number | undefined]> = {
  ...{ mount: [165, 40], umount2: [166, 39], pivot_root: [155, 41], unshare: [272, 97], setns: [308, 268], clone: [56, 220], clone3: [435, 435] },
  ...{ open_tree: [428, 428], move_mount: [429, 429], fsopen: [430, 430], fsmount: [432, 432], fspick: [433, 433], mount_setattr: [442, 442] },
  ...{ add_key: [248, 217], request_key: [249, 218], keyctl: [250, 219], personality: [135, 92], ptrace: [101, 117], fanotify_init: [300, 262] },
  ...{ io_uring_setup: [425, 425], io_uring_enter: [426, 426], io_uring_register: [427, 427], io_setup: [206, 0], userfaultfd: [323, 282] },
  ...{ bpf: [321, 280], perf_event_open: [298, 241], memfd_secret: [447, 447], kcmp: [312, 272], modify_ldt: [154, undefined], vmsplice: [278, 75] },
  ...{ kexec_load: [246, 104], kexec_file_load: [320, 294], init_module: [175, 105], finit_module: [313, 273], delete_module: [176, 106] },
  ...{ quotactl: [179, 60], quotactl_fd: [443, 443], name_to_handle_at: [303, 264], open_by_handle_at: [304, 265], syslog: [103, 116] },
  ...{ reboot: [169, 142], swapon: [167, 224], swapoff: [168, 225], settimeofday: [164, 170], clock_settime: [227, 112], adjtimex: [159, 171] },
  ...{ sethostname: [170, 161], setdomainname: [171, 162], acct: [163, 89], iopl: [172, undefined], ioperm: [173, undefined], vhangup: [153, 58] },
  ...{ process_vm_readv: [310, 270], prlimit64: [302, 261], pidfd_open: [434, 434], shmget: [29, 194], shmat: [30, 196], shmctl: [31, 195] },
  ...{ msgget: [68, 186], msgsnd: [69, 189], semget: [64, 190], mq_open: [240, 180], ioctl: [16, 29] },
};

const program = `
import ctypes, errno, fcntl, json, mmap, os, resource, signal, socket, stat, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
given = json.load(sys.stdin)
def call(name, *args):
    "A system call by its name; fails as those of the os module do."
    number = given["numbers"][name] if isinstance(name, str) else name
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if result == -1: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def write(path, text):
    file = os.open(path, os.O_WRONLY)
    os.write(file, text.encode())
def machine_code(code):
    "Runs it as a function; returns what is in eax."
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()
def attempt(source):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        own = os.getpid()
        try:
            names = dict(globals(), result=None)
            exec(source, names)
            report = {"done": names["result"]}
        except OSError as error: report = {"errno": errno.errorcode.get(error.errno, str(error.errno))}
        except BaseException as error: report = {"error": repr(error)}
        # What an attempt forks and loses sight of says nothing.
        if os.getpid() != own: os._exit(0)
        os.write(writer, json.dumps(report).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe: text = pipe.read()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status): return {"signal": signal.Signals(os.WTERMSIG(status)).name}
    return json.loads(text) if text else {"error": "ended with %d" % status}
print(json.dumps({name: attempt(source) for name, source in given["attempts"].items()}))
`;

/** Tries each piece of Python; its variable `result` is what it has achieved. */
export async function probe<Name extends string>(api: Api, id: string, attempts: Record<Name, string>): Promise<Record<Name, Outcome>> {
  const column = process.arch === "x64" ? 0 : 1;
  const native = Object.fromEntries(Object.entries(numbers).map(([name, pair]) => [name, pair[column] ?? -1]));
  const command = `cat > /tmp/probe.py <<'END'\n${program}\nEND\npython3 /tmp/probe.py <<'END'\n${JSON.stringify({ numbers: native, attempts })}\nEND`;
  const { stdout, stderr, exit_code } = await api.execute(id, command, { timeout: 120 });
  assert.equal(exit_code, 0, stderr);
  return JSON.parse(stdout) as Record<Name, Outcome>;
}

/** Tries one. */
export async function probeOne(api: Api, id: string, attempt: string): Promise<Outcome> {
  return (await probe(api, id, { attempt })).attempt;
}

/** Fails unless the kernel answered with one of these errors or signals. */
export function expectRefused(outcome: Outcome | undefined, ...answers: readonly string[]): void {
  const said = outcome && ("errno" in outcome ? outcome.errno : "signal" in outcome ? outcome.signal : undefined);
  assert.ok(said !== undefined && answers.includes(said), `answered ${JSON.stringify(outcome)}, not ${answers.join(" or ")}`);
}
