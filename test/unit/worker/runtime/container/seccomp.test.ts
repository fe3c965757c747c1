/** The list of system calls, evaluated as the kernel does. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { seccompProfile } from "../../../../../worker/runtime/container/seccomp.ts";
import { allowed, callsOf, interProcess, namespaceFlags, refused } from "../../../../../worker/runtime/container/system-calls.ts";
import { ipcBounds } from "../../../../../worker/runtime/podman/isolation.ts";

const EPERM = 1;
const ENOSYS = 38;
const EPROTONOSUPPORT = 93;
const EAFNOSUPPORT = 97;

const profileOf = (architecture: NodeJS.Architecture, withInterProcess = true) => {
  const profile = seccompProfile(withInterProcess, architecture);
  assert.ok(profile);
  return profile;
};
const profile = profileOf("x64");

const holds = { SCMP_CMP_EQ: (a: bigint, b: bigint) => a === b, SCMP_CMP_NE: (a: bigint, b: bigint) => a !== b, SCMP_CMP_GT: (a: bigint, b: bigint) => a > b };

/** How a call is answered: "allow" or an errno. All matching rules must agree. */
function answerTo(name: string, args: readonly bigint[] = [], rules = profile): "allow" | number {
  const fitting = rules.syscalls
    .filter(({ names }) => names.includes(name))
    .filter(({ args: conditions = [] }) =>
      conditions.every(({ index, op, value, valueTwo }) => {
        const argument = args[index] ?? 0n;
        return op === "SCMP_CMP_MASKED_EQ" ? (argument & BigInt(value)) === BigInt(valueTwo) : holds[op](argument, BigInt(value));
      }),
    );
  const answers = new Set(fitting.map(({ action, errnoRet }) => (action === "SCMP_ACT_ALLOW" ? ("allow" as const) : (errnoRet ?? ENOSYS))));
  assert.ok(answers.size <= 1, `${name}(${args.join(", ")}) has several answers: ${[...answers].join(", ")}`);
  return [...answers][0] ?? rules.defaultErrnoRet;
}

test("calls in no group are answered as by a kernel without them", () => {
  assert.deepEqual([profile.defaultAction, profile.defaultErrnoRet], ["SCMP_ACT_ERRNO", ENOSYS]);
  const unnamed = "add_key request_key keyctl io_uring_setup io_uring_enter io_uring_register userfaultfd memfd_secret io_setup clone3 quotactl_fd";
  const unknown = "fsopen fsmount fsconfig fspick open_tree move_mount mount_setattr fanotify_init kcmp modify_ldt vmsplice socketcall no_such_call";
  for (const name of [...unnamed.split(" "), ...unknown.split(" ")]) assert.equal(answerTo(name), ENOSYS, name);
});

test("calls that every kernel reserves for the administrator are not permitted", () => {
  const calls = "mount umount2 pivot_root unshare setns bpf perf_event_open init_module finit_module delete_module kexec_load kexec_file_load";
  const others = "quotactl name_to_handle_at open_by_handle_at reboot swapon syslog settimeofday clock_settime sethostname acct iopl";
  for (const name of [...calls.split(" "), ...others.split(" ")]) assert.equal(answerTo(name), EPERM, name);
});

test("every call is in one group only, and every group says why", () => {
  const names = [...callsOf([...allowed, interProcess, ...refused]), "clone", "socket", "socketpair", "ioctl", "personality"];
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
  for (const { why } of [...allowed, interProcess, ...refused]) assert.match(why, /\w/);
});

test("clone makes threads and processes, no namespaces", () => {
  const threads = 0x003d0f00n;
  assert.equal(answerTo("clone", [threads]), "allow");
  for (const flag of namespaceFlags) assert.equal(answerTo("clone", [threads | BigInt(flag)]), ENOSYS, flag.toString(16));
});

test("only sockets of four families in their plain protocols are allowed", () => {
  const open: Record<number, number[] | undefined> = { 2: [0, 1, 6, 17], 10: [0, 6, 17, 58], 16: [0] };
  for (let family = 0; family < 300; family++) {
    for (let protocol = 0; protocol < 300; protocol++) {
      const expected = family === 1 || open[family]?.includes(protocol) ? "allow" : open[family] ? EPROTONOSUPPORT : EAFNOSUPPORT;
      assert.equal(answerTo("socket", [BigInt(family), 1n, BigInt(protocol)]), expected, `family ${family}, protocol ${protocol}`);
    }
    assert.equal(answerTo("socketpair", [BigInt(family), 1n, 0n]), family === 1 ? "allow" : EAFNOSUPPORT);
  }
  // The kernel reads only the lower half of the register.
  assert.notEqual(answerTo("socket", [(1n << 32n) | 40n, 1n, 0n]), "allow");
  assert.notEqual(answerTo("socket", [2n, 1n, (1n << 32n) | 132n]), "allow");
});

test("no request types into a terminal or changes its line discipline, whatever the half of the register holds that the kernel ignores", () => {
  const refusedRequests = [0x5412, 0x541c, 0x5423];
  const requests = [...refusedRequests, ...Array.from({ length: 65_536 }, (_, low) => low), ...Array.from({ length: 1_000 }, () => randomInt(2 ** 32))];
  for (const request of requests) {
    for (const upper of [0n, 1n << 32n, 0xffffffffn << 32n]) {
      assert.equal(answerTo("ioctl", [3n, upper | BigInt(request)]), refusedRequests.includes(request) ? EPERM : "allow", request.toString(16));
    }
  }
});

test("a process may query its personality and disable address randomization, but not make its memory executable", () => {
  for (const value of [0n, 0xffffffffn, 0x0040000n]) assert.equal(answerTo("personality", [value]), "allow");
  for (const value of [0x0400000n, 0x0100000n, 0x0440000n, 8n]) assert.equal(answerTo("personality", [value]), ENOSYS);
});

test("only the calls of the machine's own architecture count; an architecture without a list has no profile", () => {
  assert.deepEqual([profileOf("x64").architectures, profileOf("arm64").architectures], [["SCMP_ARCH_X86_64"], ["SCMP_ARCH_AARCH64"]]);
  assert.equal(seccompProfile(true, "ppc64"), undefined);
});

test("where shared memory cannot be limited, none can be created", () => {
  const closed = profileOf("x64", false);
  for (const name of ["shmget", "semget", "msgget", "mq_open"]) {
    assert.deepEqual([answerTo(name), answerTo(name, [], closed)], ["allow", ENOSYS]);
  }
});

test("shared memory is limited to the memory of the sandbox, at every size", () => {
  for (const memoryMiB of [128, 512, 32_768]) {
    for (const pageBytes of [4_096, 65_536]) {
      const bounds = ipcBounds(memoryMiB, pageBytes);
      const bytes = memoryMiB * 1024 ** 2;
      assert.equal(bounds["kernel.shmmax"], String(bytes));
      assert.equal(Number(bounds["kernel.shmall"]) * pageBytes, bytes);
      // The worst case for queues: empty messages, each of which takes 64 bytes in the kernel.
      const queueBytes = Number(bounds["kernel.msgmni"]) * Number(bounds["kernel.msgmnb"]) * 64;
      assert.ok(queueBytes > 0 && queueBytes <= bytes / 16);
    }
  }
});
