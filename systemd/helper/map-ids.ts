/**
 * Shows the files below a folder of the worker's once more, at another of its folders, with the ids of one sandbox's range in place
 * of those on disk: an id-mapped mount, which only root can make of file systems that root has mounted.
 *
 * Root opens no path here: both folders are descriptors that the worker has open, which only leads to what the worker itself
 * could open. The worker's user rules in the mount namespace in which this is done, so Perl, which has loaded all it needs before
 * it enters, runs no program from there and reads no file.
 */
import { arch } from "node:process";
import type { Account } from "../base/instance.ts";

/** The numbers of setns(2) and unshare(2); those of newer calls are the same on all machines. */
const calls = arch === "arm64" ? ["268", "97"] : ["308", "272"];

/** Arguments: those numbers, the worker's process, its user, the descriptors of both folders, the maps of users and of groups. */
const script = String.raw`
use strict;
my ($setns, $unshare, $pid, $owner, $source, $target) = map { $_ + 0 } @ARGV[0 .. 5];
my %maps = (uid_map => $ARGV[6], gid_map => $ARGV[7]);
my ($open_tree, $move_mount, $mount_setattr) = (428, 429, 442);
my ($get_user_namespace, $get_owner, $new_user_namespace, $mount_namespace) = (0xb701, 0xb704, 0x10000000, 0x20000);
my ($path_of_folder, $empty_path, $recursive, $from_and_to_descriptor) = (010200000, 0x1000, 0x8000, 0x44);
my ($clone_close_on_exec, $nosuid_nodev_idmap, $private) = (02000001, 0x100006, 1 << 18);
my ($uid, $none) = (pack("L", 0), "");

sub folder {
  my ($descriptor) = @_;
  sysopen(my $folder, "/proc/$pid/fd/$descriptor", $path_of_folder) or die "descriptor $descriptor: $!\n";
  die "descriptor $descriptor is of a folder that belongs to another user\n" unless (stat($folder))[4] == $owner;
  return $folder;
}

sub ids {
  pipe(my $is_made, my $made) && pipe(my $is_mapped, my $mapped) or die "a pipe: $!\n";
  my $child = fork() // die "a process: $!\n";
  if (!$child) {
    close($mapped);
    syscall($unshare, $new_user_namespace) == 0 or exit(1);
    syswrite($made, "x");
    sysread($is_mapped, my $end, 1);
    exit(0);
  }
  close($made);
  sysread($is_made, my $ready, 1) or die "a user namespace cannot be made\n";
  for my $name (keys %maps) {
    open(my $map, ">", "/proc/$child/$name") or die "$name: $!\n";
    syswrite($map, "$maps{$name}\n") or die "$name: $!\n";
  }
  open(my $ids, "<", "/proc/$child/ns/user") or die "the user namespace: $!\n";
  return $ids;
}

open(my $namespace, "<", "/proc/$pid/ns/mnt") or die "its namespace: $!\n";
my $user = ioctl($namespace, $get_user_namespace, 0) or die "its user namespace: $!\n";
open(my $users, "<&=", $user) or die "its user namespace: $!\n";
ioctl($users, $get_owner, $uid) or die "its owner: $!\n";
die "it belongs to another user\n" unless unpack("L", $uid) == $owner;
my ($from, $to, $ids) = (folder($source), folder($target), ids());
syscall($setns, fileno($namespace), $mount_namespace) == 0 or die "it cannot be entered\n";
my $tree = syscall($open_tree, fileno($from), $none, $clone_close_on_exec | $empty_path | $recursive);
die "the folder cannot be shown again: $!\n" if $tree < 0;
my $attributes = pack("QQQQ", $nosuid_nodev_idmap, 0, $private, fileno($ids));
syscall($mount_setattr, $tree, $none, $empty_path | $recursive, $attributes, length($attributes)) == 0 or die "its ids cannot be mapped: $!\n";
syscall($move_mount, $tree, $none, fileno($to), $none, $from_and_to_descriptor) == 0 or die "it cannot be mounted: $!\n";
`;

/** A worker with a helper. */
export interface ServedWorker {
  readonly pid: number;
  readonly account: Pick<Account, "name" | "uid" | "gid">;
}

export interface Folders {
  readonly source: number;
  readonly target: number;
}

/** The command, for root. @param maps of users and of groups, as uid_map(5) has them */
export function mapIds({ pid, account }: ServedWorker, { source, target }: Folders, maps: readonly [users: string, groups: string]): string[] {
  return ["perl", "-e", script, ...calls, String(pid), String(account.uid), String(source), String(target), ...maps];
}
