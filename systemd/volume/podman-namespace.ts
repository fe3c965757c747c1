/**
 * Podman's mount namespace sees what was mounted before it was made. With a pause process that is older than the volume, the
 * volume is mounted in there as well.
 *
 * The worker's user rules in that namespace, so root must run no program from it and read no file in it: Perl has loaded all
 * it needs before it enters, and from there on makes one system call.
 */
import { arch } from "node:process";
import { mountAt } from "../../shared/util/mounts.ts";
import type { Account, Instance } from "../base/instance.ts";
import { findPause } from "../supervisor/pause.ts";

/** The number of setns(2); those of newer calls are the same on all machines. */
const setns = arch === "arm64" ? "268" : "308";

/** Arguments: the number of setns, the process, the user to whom its namespace must belong, the folder. */
const script = String.raw`
use strict;
my ($folder, $setns, $pid, $owner) = (pop, map { $_ + 0 } @ARGV);
my ($open_tree, $move_mount, $here) = (428, 429, -100);
my ($clone_close_on_exec, $from_descriptor, $mount_namespace) = (02000001, 4, 0x20000);
my ($get_user_namespace, $get_owner) = (0xb701, 0xb704);
my ($uid, $none) = (pack("L", 0), "");

open(my $namespace, "<", "/proc/$pid/ns/mnt") or die "its namespace: $!\n";
my $user = ioctl($namespace, $get_user_namespace, 0) or die "its user namespace: $!\n";
open(my $users, "<&=", $user) or die "its user namespace: $!\n";
ioctl($users, $get_owner, $uid) or die "its owner: $!\n";
die "it belongs to another user\n" unless unpack("L", $uid) == $owner;
my $tree = syscall($open_tree, $here, $folder, $clone_close_on_exec);
die "the volume: $!\n" if $tree < 0;
syscall($setns, fileno($namespace), $mount_namespace) == 0 or die "it cannot be entered\n";
syscall($move_mount, $tree, $none, $here, $folder, $from_descriptor) == 0 or die "the volume cannot be mounted in it\n";
`;

/** The command, for root, that makes Podman's namespace see what is mounted at a folder; undefined if it does. */
export async function showInPodman(instance: Instance, dir: string): Promise<string[] | undefined> {
  const pause = await findPause(instance);
  if (!pause || mountAt(dir, pause.pid)?.device === mountAt(dir)?.device) return undefined;
  return showIn(pause.pid, instance.account, dir);
}

/** The command that shows it in the mount namespace of a process, if that belongs to the account. */
export function showIn(pid: number, { uid }: Pick<Account, "uid">, dir: string): string[] {
  return ["perl", "-e", script, setns, String(pid), String(uid), dir];
}
