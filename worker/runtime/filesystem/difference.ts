/**
 * What a layer has more than an earlier one, as a layer to lie over that: of a copy of the later layer, what is unchanged is
 * removed, and what only the earlier one has is hidden by whiteouts.
 *
 * Both must come from the same folder of a sandbox, whose file system never gives the number of a file to another. A file is
 * unchanged if its number, its attributes and its change time are: nothing in a sandbox can set the latter, and the system's clock
 * only steps. Whatever was changed about when the earlier layer was made counts as changed, since its clock is coarse.
 */
import { arch } from "node:process";
import { runBulk } from "../process/run.ts";
import { failure } from "./tree.ts";

const timeoutMs = 3_600_000;
/** The clock of changes ticks at least a hundred times a second. */
const coarseMs = 50;

/** The numbers of lgetxattr(2), lsetxattr(2), lremovexattr(2), mknodat(2), utimensat(2) and statx(2). */
const callNumbers = arch === "arm64" ? ["9", "6", "15", "33", "88", "291"] : ["192", "189", "198", "259", "280", "332"];

/**
 * Arguments: the numbers of the calls, the time (in nanoseconds) from which on everything counts as changed, the copy, the later
 * and the earlier layer. What is removed from the copy changes the other names of a file, so those are looked at in the later layer
 * itself. Written in Perl, since Node.js reads no extended attributes and sets times only roughly. Links are never followed.
 */
const script = String.raw`
use strict;
my ($lgetxattr, $lsetxattr, $lremovexattr, $mknodat, $utimensat, $statx, $until, $copy, $later, $earlier) = (map({ $_ + 0 } splice(@ARGV, 0, 7)), @ARGV);
my ($here, $no_follow, $all, $omit, $mark) = (-100, 0x100, 0x7ff, 0x3ffffffe, "user.overlay.opaque");
my ($type, $folder, $device, $socket) = (0170000, 0040000, 0020000, 0140000);

sub look {
  my ($path) = @_;
  my $found = "\0" x 256;
  if (syscall($statx, $here, $path, $no_follow, $all, $found) != 0) { return if $!{ENOENT}; die "$path: $!\n" }
  my ($mode) = unpack("S", substr($found, 28));
  # Links, owner, mode, number, size; change and modification times; device.
  my $same = substr($found, 16, 14) . substr($found, 32, 16) . substr($found, 96, 12) . substr($found, 112, 12) . substr($found, 128, 8);
  return { type => $mode & $type, same => $same, number => substr($found, 32, 8), changed => nanoseconds(unpack("qL", substr($found, 96))),
    modified => [unpack("qL", substr($found, 112))], device => unpack("Q", substr($found, 128)) };
}

sub nanoseconds { my ($seconds, $rest) = @_; return $seconds * 1_000_000_000 + $rest }

sub names {
  my ($path) = @_;
  opendir(my $entries, $path) or die "$path: $!\n";
  $! = 0;
  my @names = grep { $_ ne "." && $_ ne ".." } readdir $entries;
  die "$path: $!\n" if $!;
  return @names;
}

sub is_opaque {
  my ($path) = @_;
  my $value = "\0" x 16;
  return syscall($lgetxattr, $path, $mark, $value, 16) == 1 && substr($value, 0, 1) eq "y";
}

sub is_whiteout { my ($file) = @_; return $file->{type} == $device && $file->{device} == 0 }
sub is_same {
  my ($file, $other) = @_;
  return 1 if is_whiteout($file) && is_whiteout($other);
  return $file->{same} eq $other->{same} && $file->{changed} < $until;
}
sub hide { my ($path) = @_; syscall($mknodat, $here, $path, $device, 0) == 0 or die "$path: $!\n" }

# Returns whether anything is left that the earlier layer does not have.
sub prune {
  my ($path, $after, $before, $own, $other) = @_;
  # Another folder of the same name: what the earlier one held must not be seen in it.
  if ($own->{number} ne $other->{number}) {
    my $value = "y";
    syscall($lsetxattr, $path, $mark, $value, 1, 0) == 0 or die "$path: $!\n";
    return 1;
  }
  my ($opaque, $was) = (is_opaque($after), is_opaque($before));
  return 1 if $opaque && !$was;
  die "$path does not hide any more what is below it\n" if $was && !$opaque;
  # That of the earlier layer hides what is below both.
  syscall($lremovexattr, $path, $mark) == 0 or die "$path: $!\n" if $opaque;
  my %gone = map { $_ => 1 } names($before);
  my $left = 0;
  for my $name (names($after)) {
    my $mine = look("$after/$name") or die "$after/$name is gone\n";
    my $theirs = delete $gone{$name} && look("$before/$name");
    if (!$theirs) { $left = 1 }
    elsif ($mine->{type} == $folder && $theirs->{type} == $folder) {
      if (prune("$path/$name", "$after/$name", "$before/$name", $mine, $theirs)) { $left = 1 }
      else { rmdir("$path/$name") or die "$path/$name: $!\n" }
    }
    elsif (is_same($mine, $theirs)) { unlink("$path/$name") or die "$path/$name: $!\n" }
    else {
      $left = 1;
      # A socket is not archived, so it would hide nothing.
      if ($mine->{type} == $socket) { unlink("$path/$name") or die "$path/$name: $!\n"; hide("$path/$name") }
    }
  }
  for my $name (keys %gone) { $left = 1; hide("$path/$name") }
  my $times = pack("q4", 0, $omit, @{$own->{modified}});
  syscall($utimensat, $here, $path, $times, $no_follow) == 0 or die "$path: $!\n";
  return $left || !is_same($own, $other);
}

no warnings "recursion";
my ($own, $other) = (look($later), look($earlier));
die "they are not of one folder\n" unless $own && $other && $own->{number} eq $other->{number};
prune($copy, $later, $earlier, $own, $other);
`;

/**
 * Reduces a copy of a layer to what the layer has more than an earlier one. The layers themselves stay as they are.
 *
 * @param earlier.madeAtMs when it was made, or shortly before
 * @throws {SandgateError} `internal_error` where the difference cannot be told, as with very long paths; `insufficient_storage`
 */
export async function keepDifference(copy: string, later: string, earlier: { readonly dir: string; readonly madeAtMs: number }): Promise<void> {
  const until = `${earlier.madeAtMs - coarseMs}000000`;
  const result = await runBulk("setpriv", ["--pdeathsig", "KILL", "perl", "-e", script, ...callNumbers, until, copy, later, earlier.dir], { timeoutMs });
  if (result.exitCode !== 0) throw failure("find out what has changed since an earlier snapshot", result.stderr);
}
