/**
 * Prepares what the copies of processes get from a container that has been made for them and not started, and then becomes CRIU:
 * its control group, its root and its mounts, in a mount namespace that ends with CRIU.
 *
 * The worker's user rules in the mount namespace of that container. Perl, which has loaded all it needs before, takes the mounts
 * out of there, runs no program and reads no file there, and resolves paths in them without following links.
 */
import { arch } from "node:process";

/** The numbers of setns(2), unshare(2) and mount(2); those of newer calls are the same on all machines. */
const calls = arch === "arm64" ? ["268", "97", "40"] : ["308", "272", "165"];

const script = String.raw`
use strict;
my ($setns, $unshare, $mount, $pid, $stage, $group, $count) = @ARGV[0 .. 6];
my @paths = @ARGV[7 .. 6 + $count];
my @command = @ARGV[7 + $count .. $#ARGV];
$_ += 0 for $setns, $unshare, $mount;
my ($open_tree, $move_mount, $openat2) = (428, 429, 437);
my ($get_user_namespace, $new_mounts, $new_groups) = (0xb701, 0x20000, 0x02000000);
my ($clone, $recursive, $empty_path, $close_on_exec, $from_descriptor) = (1, 0x8000, 0x1000, 02000000, 4);
my ($path_only, $in_root_without_links) = (010000000, 0x10 | 0x04 | 0x02);
my ($private_recursive, $none) = ((1 << 18) | (1 << 14), "");

sub call {
  my ($what, $number, @arguments) = @_;
  my $result = syscall($number, @arguments);
  die "$what: $!\n" if $result < 0;
  return $result;
}

sub identity { return join(":", (stat($_[0]))[0, 1]); }

open(my $own, "<", "/proc/self/ns/mnt") or die "our mounts: $!\n";
open(my $mounts, "<", "/proc/$pid/ns/mnt") or die "its mounts: $!\n";
open(my $users, "<", "/proc/$pid/ns/user") or die "its users: $!\n";
my $owner = ioctl($mounts, $get_user_namespace, 0) or die "the owner of its mounts: $!\n";
open(my $owners, "<&=", $owner) or die "the owner of its mounts: $!\n";
die "its mounts belong to other users\n" unless identity($owners) eq identity($users);

open(my $processes, ">", "$group/cgroup.procs") or die "its control group: $!\n";
syswrite($processes, "0") or die "its control group: $!\n";
close($processes);
call("a view of control groups", $unshare, $new_groups);

call("its mounts", $setns, fileno($mounts), $new_mounts);
chdir("/") or die "its root: $!\n";
my $root_path = "/";
my $root = call("its root", $open_tree, -100, $root_path, $clone | $close_on_exec);
my $top = call("its root", $open_tree, -100, $root_path, $close_on_exec);
my @clones = map {
  my $path = ".$_";
  my $how = pack("QQQ", $path_only | $close_on_exec, 0, $in_root_without_links);
  my $place = call("$_ is not there", $openat2, $top, $path, $how, length($how));
  open(my $found, "<&=", $place) or die "$_: $!\n";
  [-d $found, call("$_ cannot be shown", $open_tree, $place, $none, $clone | $recursive | $empty_path | $close_on_exec)];
} @paths;
call("our mounts", $setns, fileno($own), $new_mounts);

call("mounts of our own", $unshare, $new_mounts);
my ($from, $at, $type, $options) = ("none", "/", "tmpfs", "mode=711,size=1m");
call("mounts of our own", $mount, $from, $at, $none, $private_recursive, 0);
call("a stage", $mount, $from, $stage, $type, 0, $options);
my $root_at = "$stage/root";
mkdir($root_at) or die "a stage: $!\n";
call("its root", $move_mount, $root, $none, -100, $root_at, $from_descriptor);
for my $index (0 .. $#clones) {
  my ($is_folder, $tree) = @{$clones[$index]};
  my $at = "$stage/$index";
  if ($is_folder) { mkdir($at) or die "a stage: $!\n" } else { open(my $file, ">", $at) or die "a stage: $!\n" }
  call($paths[$index], $move_mount, $tree, $none, -100, $at, $from_descriptor);
}
call("mounts of our own", $mount, $from, $at, $none, $private_recursive, 0);
exec(@command) or die "CRIU: $!\n";
`;

export interface Stage {
  /** The first process of the container. */
  readonly pid: number;
  /** A folder of root's. What is mounted there is seen by CRIU alone. */
  readonly dir: string;
  /** The container's control group, as a folder. */
  readonly group: string;
  /** Paths of mounts in the container. */
  readonly paths: readonly string[];
}

/** What starts a command on the stage, for root. */
export const onStage = ({ pid, dir, group, paths }: Stage): string[] => [
  "perl",
  "-e",
  script,
  ...calls,
  String(pid),
  dir,
  group,
  String(paths.length),
  ...paths,
];

/** The options by which CRIU finds everything there. */
export const stagedMounts = ({ dir, paths }: Pick<Stage, "dir" | "paths">): string[] => [
  ...["--root", `${dir}/root`],
  ...paths.flatMap((_, index) => ["--external", `mnt[m${index}]:${dir}/${index}`]),
];
