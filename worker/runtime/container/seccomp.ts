/** The list of system calls in Podman's format: rules for libseccomp in JSON. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../host/host.ts";
import * as list from "./system-calls.ts";

/** From errno.h; the same on all supported architectures. */
const errno = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;
/** Arguments are 64 bits wide; of an int, the kernel reads only the lower half. */
const intMask = 0xffffffff;

/**
 * Only the native calls of a machine. 32-bit programs are killed: their calls have other numbers and conventions (socketcall
 * passes its arguments in memory, which a filter cannot read).
 */
const architectures: Partial<Record<NodeJS.Architecture, string>> = { x64: "SCMP_ARCH_X86_64", arm64: "SCMP_ARCH_AARCH64" };

interface Condition {
  readonly index: number;
  readonly value: number;
  readonly valueTwo: number;
  readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_NE" | "SCMP_CMP_GT" | "SCMP_CMP_MASKED_EQ";
}

interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  /** All of them must hold. */
  readonly args?: readonly Condition[];
}

export interface Profile {
  readonly defaultAction: "SCMP_ACT_ERRNO";
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly Rule[];
}

const equals = (index: number, value: number): Condition => ({ index, value, valueTwo: 0, op: "SCMP_CMP_EQ" });
const above = (index: number, value: number): Condition => ({ index, value, valueTwo: 0, op: "SCMP_CMP_GT" });
const masked = (index: number, mask: number, value: number): Condition => ({ index, value: mask >>> 0, valueTwo: value >>> 0, op: "SCMP_CMP_MASKED_EQ" });
const allow = (name: string, ...args: Condition[]): Rule => ({ names: [name], action: "SCMP_ACT_ALLOW", ...(args.length > 0 ? { args } : {}) });
const refuse = (name: string, errnoRet: number, ...args: Condition[]): Rule => ({ ...allow(name, ...args), action: "SCMP_ACT_ERRNO", errnoRet });

/**
 * @param interProcess whether SysV and POSIX shared memory, semaphores and queues are allowed.
 * @returns undefined for an architecture without a list.
 */
export function seccompProfile(interProcess: boolean, architecture: NodeJS.Architecture = process.arch): Profile | undefined {
  const native = architectures[architecture];
  if (!native) return undefined;
  const allowed = list.callsOf(interProcess ? [...list.allowed, list.interProcess] : list.allowed);
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: errno.ENOSYS,
    architectures: [native],
    syscalls: [
      { names: allowed, action: "SCMP_ACT_ALLOW" },
      { names: list.callsOf(list.refused), action: "SCMP_ACT_ERRNO", errnoRet: errno.EPERM },
      ...cloneRules(),
      ...list.personalities.map((value) => allow("personality", equals(0, value))),
      ...socketRules(),
      ...ioctlRules(),
    ],
  };
}

/** Writes the list, and one that allows nothing. @returns undefined for an architecture without a list. */
export function writeSeccompProfiles(dir: string, interProcess: boolean): Host["seccompProfiles"] | undefined {
  const profile = seccompProfile(interProcess);
  if (!profile) return undefined;
  const write = (name: string, written: Profile): string => {
    const file = join(dir, name);
    writeFileSync(file, JSON.stringify(written), { mode: 0o600 });
    return file;
  };
  return { whole: write("seccomp.json", profile), empty: write("seccomp-empty.json", { ...profile, syscalls: [] }) };
}

/** clone3 has its flags in memory, which a filter cannot read. It is left out, and C libraries fall back to clone. */
function cloneRules(): Rule[] {
  const flags = list.namespaceFlags.reduce((all, flag) => all | flag, 0);
  return [allow("clone", masked(0, flags, 0))];
}

/** Programs can cope with a family or protocol that the kernel lacks; on other errors some give up (libaudit). */
function socketRules(): Rule[] {
  const families = list.socketFamilies.map(({ family }) => family);
  return [
    ...list.socketFamilies.flatMap(({ family, protocols }) =>
      protocols
        ? [
            ...protocols.map((protocol) => allow("socket", equals(0, family), equals(2, protocol))),
            ...otherThan(2, protocols).map((condition) => refuse("socket", errno.EPROTONOSUPPORT, equals(0, family), condition)),
          ]
        : [allow("socket", equals(0, family))],
    ),
    ...otherThan(0, families).map((condition) => refuse("socket", errno.EAFNOSUPPORT, condition)),
    // Only local sockets come in pairs.
    allow("socketpair", equals(0, 1)),
    refuse("socketpair", errno.EAFNOSUPPORT, { ...equals(0, 1), op: "SCMP_CMP_NE" }),
  ];
}

/** Conditions, exactly one of which holds for any value of the argument that is not in `values`. */
function otherThan(index: number, values: readonly number[]): Condition[] {
  const highest = Math.max(...values);
  const gaps = Array.from({ length: highest }, (_, value) => value).filter((value) => !values.includes(value));
  return [...gaps.map((value) => equals(index, value)), above(index, highest)];
}

/**
 * A rule for one request would contradict a rule for all requests, and the upper half of the argument may be anything. So
 * the rules allow every number that differs from the refused ones in its lower 32 bits.
 */
function ioctlRules(): Rule[] {
  const requests = list.refusedRequests.map(({ request }) => request);
  return [
    ...prefixesWithout(requests, 31, 0).map(({ mask, value }) => allow("ioctl", masked(1, mask, value))),
    ...requests.map((request) => refuse("ioctl", errno.EPERM, masked(1, intMask, request))),
  ];
}

interface Prefix {
  readonly mask: number;
  readonly value: number;
}

/** The fewest 32-bit prefixes, within the subtree at `bit` and `value`, that cover all numbers except these. */
function prefixesWithout(numbers: readonly number[], bit: number, value: number): Prefix[] {
  if (bit < 0) return [];
  return [value, value | (1 << bit)].flatMap((half) => {
    const mask = -1 << bit;
    const inside = numbers.filter((number) => (number & mask) === half);
    return inside.length === 0 ? [{ mask, value: half }] : prefixesWithout(inside, bit - 1, half);
  });
}
