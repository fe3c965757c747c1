/**
 * The system calls that programs in a sandbox may make. The list starts empty: calls in no group fail with ENOSYS, as on a kernel
 * without them, which programs and C libraries can cope with. Names are those of libseccomp; names unknown to an architecture
 * or an older libseccomp are skipped.
 */
interface Group {
  readonly why: string;
  readonly calls: string;
}

/** Allowed with any arguments. */
export const allowed: readonly Group[] = [
  {
    why: "Files: open, read, write, and wait for the disk.",
    calls: `open openat openat2 creat close close_range read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2
      lseek dup dup2 dup3 fcntl flock fsync fdatasync sync syncfs sync_file_range ftruncate truncate fallocate fadvise64 readahead
      sendfile copy_file_range splice tee umask`,
  },
  {
    why: "Names, folders and attributes of files. Device nodes are refused by the kernel: no sandbox has CAP_MKNOD.",
    calls: `stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents getdents64 getcwd chdir fchdir
      mkdir mkdirat rmdir link linkat symlink symlinkat readlink readlinkat unlink unlinkat rename renameat renameat2 mknod mknodat
      chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
      getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr`,
  },
  {
    why: "chroot: package managers and services that confine themselves. It needs the capability, which sandboxes have.",
    calls: "chroot",
  },
  {
    why: "Memory of the process, and where on a machine with several nodes it lies (the JVM, numerical libraries).",
    calls: `brk mmap munmap mprotect mremap madvise msync mincore mlock mlock2 mlockall munlock munlockall memfd_create
      pkey_alloc pkey_free pkey_mprotect membarrier get_mempolicy set_mempolicy mbind`,
  },
  {
    why: "Processes: make, replace, wait for and end them. clone is below, as it can make namespaces.",
    calls: `fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp setpgid getsid setsid
      pidfd_open pidfd_send_signal pidfd_getfd set_tid_address prctl arch_prctl`,
  },
  {
    why: "Threads and what they wait on.",
    calls: "futex futex_waitv set_robust_list get_robust_list rseq sched_yield getcpu restart_syscall",
  },
  {
    why: "Priorities and CPUs. The kernel lets nobody here go beyond an ordinary process.",
    calls: `getpriority setpriority ioprio_get ioprio_set sched_getaffinity sched_setaffinity sched_getattr sched_setattr
      sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min
      sched_rr_get_interval`,
  },
  {
    why: "Signals, and descriptors that tell of signals, events and times.",
    calls: `kill tkill tgkill pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_tgsigqueueinfo rt_sigreturn
      rt_sigsuspend rt_sigtimedwait sigaltstack signalfd signalfd4 eventfd eventfd2 timerfd_create timerfd_gettime timerfd_settime`,
  },
  {
    why: "Time: read and wait for it. Nothing here sets a clock.",
    calls: `time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer times
      timer_create timer_delete timer_getoverrun timer_gettime timer_settime`,
  },
  {
    why: "Waiting for many descriptors, and for changes of files.",
    calls: `poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
      inotify_init inotify_init1 inotify_add_watch inotify_rm_watch pipe pipe2`,
  },
  {
    why: "Existing sockets. Which ones can be created is below.",
    calls: `bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt
      sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg`,
  },
  {
    why: "Users, groups and capabilities of the process: root of a sandbox, package managers and services change to others.",
    calls: `getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid
      setfsuid setfsgid setgroups capget capset`,
  },
  {
    why: "Limits and use of resources, and what kind of system this is.",
    calls: "getrlimit setrlimit prlimit64 getrusage sysinfo uname getrandom",
  },
  {
    why: "A process may confine itself further (browsers, sshd, file).",
    calls: "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
  },
  {
    why: `Debuggers and tracers. They reach processes of their own sandbox only: others have no number in its pid namespace,
      and since Linux 4.8 a traced process cannot get around this list.`,
    calls: "ptrace process_vm_readv process_vm_writev",
  },
];

/** Shared memory, semaphores and message queues: allowed where their use by a sandbox is limited. */
export const interProcess: Group = {
  why: "Databases (PostgreSQL) and programs that exchange memory. Each sandbox has an IPC namespace of its own.",
  calls: `shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`,
};

/**
 * Refused with EPERM: every kernel has these, and programs know them as reserved for the administrator. Others that are left out
 * need no mention: keys (add_key, request_key, keyctl); io_uring; userfaultfd; memfd_secret, whose memory nobody counts;
 * asynchronous I/O (io_setup), whose slots are shared by the whole machine; and the newer ways to mount.
 */
export const refused: readonly Group[] = [
  { why: "Mounts and namespaces: with a user namespace of its own a sandbox would have every capability.", calls: "mount umount2 pivot_root unshare setns" },
  { why: "Programs in the kernel, and its counters.", calls: "bpf perf_event_open init_module finit_module delete_module kexec_load kexec_file_load" },
  {
    why: "What belongs to the whole machine.",
    calls: `reboot swapon swapoff settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname
      quotactl acct syslog iopl ioperm vhangup`,
  },
  { why: "Files by handle lead out of the root folder.", calls: "name_to_handle_at open_by_handle_at" },
];

/** From linux/sched.h: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
export const namespaceFlags: readonly number[] = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000];

/** Address families of sockets, and which of their protocols. Raw sockets need a capability that no sandbox has. */
export const socketFamilies: readonly { readonly why: string; readonly family: number; readonly protocols?: readonly number[] }[] = [
  { why: "AF_UNIX", family: 1 },
  { why: "AF_INET: the kernel's choice, ICMP (ping), TCP, UDP", family: 2, protocols: [0, 1, 6, 17] },
  { why: "AF_INET6: as AF_INET, with ICMPv6", family: 10, protocols: [0, 6, 17, 58] },
  { why: "AF_NETLINK: NETLINK_ROUTE, by which programs list interfaces and addresses", family: 16, protocols: [0] },
];

/** personality(2): PER_LINUX, ADDR_NO_RANDOMIZE (debuggers), and the query of the current value. None makes memory executable. */
export const personalities: readonly number[] = [0, 0x0040000, 0xffffffff];

/** ioctl(2) requests that are refused for any file. */
export const refusedRequests: readonly { readonly why: string; readonly request: number }[] = [
  { why: "TIOCSTI types into a terminal, for whoever reads there next.", request: 0x5412 },
  { why: "TIOCLINUX does so on a console.", request: 0x541c },
  { why: "TIOCSETD loads kernel modules of rare line disciplines.", request: 0x5423 },
];

/** The individual calls of these groups. */
export const callsOf = (groups: readonly Group[]): string[] => groups.flatMap(({ calls }) => calls.split(/\s+/));
