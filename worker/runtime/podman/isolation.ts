/** What keeps a sandbox to itself, as arguments of `podman run`: capabilities, system calls, memory that processes share. */
import type { Host } from "../host/host.ts";
import { oomScoreAdj } from "../process/priority.ts";

/** Linux capabilities a sandbox keeps: enough for package managers and services, nothing about the host. */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"];

/** Beside what Podman hides: how busy the host is, and what of its hardware tells of the work of others. */
const hidden = ["/proc/pressure", "/proc/interrupts", "/sys/devices/virtual/powercap"];

const segmentsMax = 1_024;
/** Message queues hold as many bytes; a message of none takes 64 of the kernel, and as many of them fit in. */
const queueBytesMax = 16_384;
const queueMemoryBytesMax = 64 * queueBytesMax;
/** Of a sandbox's memory, message queues may fill this part. */
const queuesShare = 1 / 16;

/** Bounds of a sandbox's IPC namespace, by the names of sysctl(8). Without them its defaults are those of no bound at all. */
export function ipcBounds(memoryMiB: number, pageBytes: number): Readonly<Record<string, string>> {
  const memoryBytes = memoryMiB * 1024 ** 2;
  const queues = Math.max(1, Math.floor((memoryBytes * queuesShare) / queueMemoryBytesMax));
  return {
    "kernel.shmmax": String(memoryBytes),
    "kernel.shmall": String(Math.floor(memoryBytes / pageBytes)),
    "kernel.shmmni": String(segmentsMax),
    // A segment that no process has attached is removed, so that memory goes with those who took it.
    "kernel.shm_rmid_forced": "1",
    "kernel.msgmax": "8192",
    "kernel.msgmnb": String(queueBytesMax),
    "kernel.msgmni": String(queues),
    // Semaphores of a set, of all sets, operations of a call, sets.
    "kernel.sem": "250 32000 100 128",
    // What all POSIX queues of a user may hold, 800 kB by default, counts for all sandboxes together: one cannot take it all.
    "fs.mqueue.queues_max": "4",
    "fs.mqueue.msg_max": "10",
    "fs.mqueue.msgsize_max": "8192",
  };
}

export function isolationArguments(host: Host, memoryMiB: number): string[] {
  return [
    ...["--cap-drop", "all", ...capabilities.flatMap((name) => ["--cap-add", name]), "--security-opt", "no-new-privileges"],
    ...["--security-opt", `seccomp=${host.seccompProfile}`],
    ...["--security-opt", `mask=${hidden.join(":")}`],
    ...["--oom-score-adj", String(oomScoreAdj)],
    // Whatever the account may do: a process of a sandbox never gets a higher priority than it began with.
    ...["--ulimit", "nice=0:0", "--ulimit", "rtprio=0:0"],
    ...(host.ipc === "bounded" ? Object.entries(ipcBounds(memoryMiB, host.pageBytes)).flatMap(([name, value]) => ["--sysctl", `${name}=${value}`]) : []),
    ...(host.controlGroups === "v2" ? [] : ["--mount", "type=tmpfs,destination=/sys/fs/cgroup,tmpfs-size=4k,tmpfs-mode=0555,notmpcopyup,ro"]),
  ];
}
