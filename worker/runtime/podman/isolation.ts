/** What isolates a sandbox: capabilities, system calls, and limits on shared memory. */
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import { groupMaker, type Host } from "../host/host.ts";
import { oomScoreAdj } from "../process/priority.ts";
import type { Mount, Rlimit } from "./spec-generator.ts";

/** Linux capabilities a sandbox keeps: enough for package managers and services, none over the host. */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"];

/** Hidden in addition to what Podman hides: the host's load, hardware data that reveals the work of others, and what they store. */
const hidden = ["/proc/pressure", "/proc/interrupts", "/sys/devices/virtual/powercap", "/sys/fs/btrfs"];

const segmentsMax = 1_024;
/** The most messages and bytes in a queue; an empty message takes 64 bytes in the kernel and counts towards the same number. */
const queueBytesMax = 16_384;
const queueMemoryBytesMax = 64 * queueBytesMax;
/** The part of a sandbox's memory that message queues may fill. */
const queuesShare = 1 / 16;

/** Limits of a sandbox's IPC namespace, by sysctl(8) name. The kernel's defaults amount to no limit. */
export function ipcBounds(memoryMiB: number, pageBytes: number): Readonly<Record<string, string>> {
  const memoryBytes = memoryMiB * 1024 ** 2;
  const queues = Math.max(1, Math.floor((memoryBytes * queuesShare) / queueMemoryBytesMax));
  return {
    "kernel.shmmax": String(memoryBytes),
    "kernel.shmall": String(Math.floor(memoryBytes / pageBytes)),
    "kernel.shmmni": String(segmentsMax),
    // Removes a segment when no process has it attached, so that its memory goes with its users.
    "kernel.shm_rmid_forced": "1",
    "kernel.msgmax": "8192",
    "kernel.msgmnb": String(queueBytesMax),
    "kernel.msgmni": String(queues),
    // Semaphores per set, semaphores in all sets, operations per call, sets.
    "kernel.sem": "250 32000 100 128",
    // The total for all POSIX queues of a user, 800 kB by default, is shared by all sandboxes; this keeps one from taking it all.
    "fs.mqueue.queues_max": "4",
    "fs.mqueue.msg_max": "10",
    "fs.mqueue.msgsize_max": "8192",
  };
}

/** The part of a container's specification that isolates a sandbox. */
export function isolation(host: Host, { isolation, memoryMiB }: { readonly isolation: Isolation; readonly memoryMiB: number }) {
  return {
    cap_drop: ["all"],
    cap_add: capabilities,
    no_new_privileges: true,
    seccomp_profile_path: host.seccompProfiles.whole,
    // Only for `podman inspect`.
    annotations: { "io.podman.annotations.seccomp": host.seccompProfiles.whole },
    mask: hidden,
    oom_score_adj: oomScoreAdj,
    // Whatever the account may do, a process in a sandbox never gets a higher priority than it started with.
    r_limits: [limit("nice", 0), limit("rtprio", 0)],
    sysctl: host.ipc === "bounded" ? ipcBounds(memoryMiB, host.pageBytes) : {},
    // Only with a group from Podman is a sandbox's view of groups its own; with ours it would show that of the worker.
    mounts: [sharedMemory, ...(host.controlGroups === "v2" && !groupMaker(host, isolation) ? [] : [noControlGroups])],
  };
}

export const limit = (type: string, value: number): Rlimit => ({ type, soft: value, hard: value });

/** Without it, a sandbox would see the groups of all others. */
const noControlGroups: Mount = { type: "tmpfs", source: "tmpfs", destination: "/sys/fs/cgroup", options: ["size=4k", "mode=0555", "notmpcopyup", "ro"] };

/** Made in the container, not for it by Podman with ids of the host, so that an image of its processes can have it. */
const sharedMemory: Mount = {
  type: "tmpfs",
  source: "shm",
  destination: "/dev/shm",
  options: ["size=64m", "mode=1777", "nosuid", "nodev", "noexec", "notmpcopyup"],
};
