/**
 * Large files of a difference of which only a part has changed: the unchanged blocks become holes, and whoever unpacks the
 * difference fills them from the layers below. What it must become is known by its SHA-256.
 */
import { arch } from "node:process";
import { runBulk } from "../process/run.ts";
import { type BlockFile, filesMax, rangesMax } from "./block-header.ts";
import { failure } from "./tree.ts";

const timeoutMs = 3_600_000;
/** Smaller files are stored whole. */
const fileBytesMin = 1024 ** 2;
/** What databases write at once; a multiple of what file systems share. */
const blockBytes = 16 * 1024;
/** Longer paths would take long to describe. */
const pathBytesMax = 1_000;

/** The numbers of fallocate(2), utimensat(2), statx(2), lgetxattr(2) and copy_file_range(2); that of openat2(2) is the same everywhere. */
const callNumbers = arch === "arm64" ? ["47", "88", "291", "9", "285"] : ["285", "280", "332", "192", "326"];

/** In Perl, as in `difference.ts`. */
const common = String.raw`
use strict;
my ($fallocate, $utimensat, $statx, $lgetxattr, $copy_file_range) = map({ $_ + 0 } splice(@ARGV, 0, 5));
my ($openat2, $here, $omit, $by_handle) = (437, -100, 0x3ffffffe, 0x1000);

# Opens a file below a folder, over no link and no mount. Returns nothing where there is none.
sub open_in {
  my ($folder, $path, $flags) = @_;
  opendir(my $top, $folder) or die "$folder: $!\n";
  # Nothing that is opened stands still, whatever it is.
  my ($how, $none) = (pack("Q3", $flags | 04000 | 02000000, 0, 0x01 | 0x04 | 0x08), "$path\0");
  my $number = syscall($openat2, fileno($top), $none, $how, 24);
  if ($number < 0) { return if $!{ENOENT}; die "$folder/$path: $!\n" }
  open(my $file, ($flags & 2 ? "+<&=" : "<&="), $number) or die "$folder/$path: $!\n";
  die "$folder/$path is no file\n" unless -f $file;
  binmode $file;
  return $file;
}

sub modified {
  my ($file) = @_;
  my ($empty, $found) = ("\0", "\0" x 256);
  syscall($statx, fileno($file), $empty, $by_handle, 0x7ff, $found) == 0 or die "statx: $!\n";
  return unpack("qL", substr($found, 112));
}

sub set_modified {
  my ($file, @time) = @_;
  my $times = pack("q4", 0, $omit, @time);
  syscall($utimensat, fileno($file), 0, $times, 0) == 0 or die "utimensat: $!\n";
}

sub sha256 {
  my ($file) = @_;
  sysseek($file, 0, 0);
  my $pid = open(my $sum, "-|") // die "fork: $!\n";
  if (!$pid) { open(STDIN, "<&", $file) or die; exec "sha256sum" or die }
  my ($hash) = (<$sum> // "") =~ /^([0-9a-f]{64})/;
  close $sum;
  return $hash // die "sha256sum has failed\n";
}

# Where data comes next, or the size.
sub data_from {
  my ($file, $at, $size) = @_;
  my $next = sysseek($file, $at, 3);
  return defined $next ? $next + 0 : $!{ENXIO} ? $size : die "lseek: $!\n";
}

sub hole_from {
  my ($file, $at, $size) = @_;
  return (sysseek($file, $at, 4) // $size) + 0;
}
`;

/** Arguments: bytes of a block, of the smallest file and of a path, how many ranges and files, the copy, the later and the earlier layer. */
const keepScript = `${common}${String.raw`
my ($block, $least, $path_max, $ranges_left, $files_left, $copy, $later, $earlier) = @ARGV;
my ($chunk, %seen) = (1 << 20);

sub read_at {
  my ($file, $at, $length) = @_;
  sysseek($file, $at, 0);
  my $text = "";
  while (length($text) < $length) { my $got = sysread($file, $text, $length - length($text), length($text)) // die "read: $!\n"; last if !$got }
  return $text;
}

# The ranges in which two files differ, or nothing if they are too many or too much.
sub differing {
  my ($new, $old, $size, $old_size) = @_;
  my ($at, $bytes, @ranges) = (0, 0);
  while ($at < $size) {
    my ($from, $other) = (data_from($new, $at, $size), $at < $old_size ? data_from($old, $at, $old_size) : $size);
    $from = $other if $other < $from && $other < $size;
    $at = $from - $from % $block if $from > $at;
    last if $at >= $size;
    my ($mine, $theirs) = (read_at($new, $at, $chunk), read_at($old, $at, $chunk));
    for (my $in = 0; $mine ne $theirs && $in < length $mine; $in += $block) {
      next if substr($mine, $in, $block) eq ($in < length $theirs ? substr($theirs, $in, $block) : "");
      my ($begin, $end) = ($at + $in, $at + $in + length substr($mine, $in, $block));
      if (@ranges && $ranges[-1][1] == $begin) { $ranges[-1][1] = $end } else { push @ranges, [$begin, $end] }
      $bytes += $end - $begin;
      return if @ranges > $ranges_left || $bytes * 2 > $size;
    }
    $at += length $mine or last;
  }
  return \@ranges;
}

sub reduce {
  my ($path) = @_;
  my ($number, $mode, $links, $size, $blocks) = (lstat "$later/$path")[1, 2, 3, 7, 12];
  # Writing takes away rights that a file gives, and to read through many holes takes long.
  return if $size < $least || $size > 2 * 512 * $blocks || $mode & 06000 || $seen{$number}++;
  my ($whole, $right, $value) = ("$later/$path", "security.capability", "\0");
  return if syscall($lgetxattr, $whole, $right, $value, 0) >= 0;
  my $old_number = (lstat "$earlier/$path")[1];
  return if !defined $old_number || $old_number != $number || !-f _;
  my ($new, $old) = (open_in($later, $path, 0), open_in($earlier, $path, 0));
  my $old_size = -s $old;
  my $kept = differing($new, $old, $size, $old_size) or return;
  # A hole beyond the end of the earlier one is one of this file.
  my @filled = grep { $_->[0] < $_->[1] } gaps($kept, $size < $old_size ? $size : $old_size);
  return if !@filled || $files_left-- <= 0;
  $ranges_left -= @$kept;
  my $hash = sha256($new);
  my $file = open_in($copy, $path, 2);
  my @time = modified($file);
  for my $gap (@filled) { syscall($fallocate, fileno($file), 3, $gap->[0], $gap->[1] - $gap->[0]) == 0 or die "fallocate: $!\n" }
  set_modified($file, @time);
  printf "%s %s %s %s\n", unpack("H*", $path), $size, $hash, join(",", map { "$_->[0]-$_->[1]" } @$kept);
}

sub gaps {
  my ($kept, $end) = @_;
  my ($at, @gaps) = (0);
  for my $range (@$kept) { push @gaps, [$at, $range->[0] < $end ? $range->[0] : $end]; $at = $range->[1] }
  return (@gaps, [$at, $end]);
}

my @folders = ("");
while (defined(my $folder = shift @folders)) {
  opendir(my $entries, "$copy/$folder") or die "$copy/$folder: $!\n";
  for my $name (sort grep { $_ ne "." && $_ ne ".." } readdir $entries) {
    my $path = $folder eq "" ? $name : "$folder/$name";
    lstat "$copy/$path" or die "$copy/$path: $!\n";
    if (-d _) { push @folders, $path } elsif (-f _ && length $path <= $path_max) { reduce($path) }
  }
}
`}`;

/** Arguments: the bytes that may be taken, the folder, and those below it, topmost first. Standard input: a line for each file. */
const fillScript = `${common}${String.raw`
my ($room, $folder, @below) = @ARGV;

sub fill {
  my ($path, $size, $hash, @gaps) = @_;
  my $file = open_in($folder, $path, 2) or die "$path is not there\n";
  die "$path has another size\n" unless -s $file == $size;
  my $base;
  for my $dir (@below) { last if $base = open_in($dir, $path, 0) }
  die "there is nothing below $path\n" unless $base;
  my ($base_size, @time) = (-s $base, modified($file));
  for my $gap (@gaps) {
    my ($at, $end) = ($gap->[0], $gap->[1] < $base_size ? $gap->[1] : $base_size);
    while (($at = $at < $end ? data_from($base, $at, $end) : $end) < $end) {
      my $until = hole_from($base, $at, $end);
      $until = $end if $until > $end;
      ($room -= $until - $at) >= 0 or die "No space left on device: more than the sandbox may store\n";
      take($base, $file, $at, $until - $at);
      $at = $until;
    }
  }
  die "$path differs\n" unless sha256($file) eq $hash;
  set_modified($file, @time);
}

# Shares the blocks where the file system can.
sub take {
  my ($from, $to, $at, $length) = @_;
  while ($length > 0) {
    my ($in, $out) = (pack("q", $at), pack("q", $at));
    my $copied = syscall($copy_file_range, fileno($from), $in, fileno($to), $out, $length, 0);
    if ($copied < 0 && ($!{EXDEV} || $!{EINVAL} || $!{EOPNOTSUPP})) {
      sysseek($from, $at, 0);
      $copied = sysread($from, my $text, $length < 1 << 20 ? $length : 1 << 20) // die "read: $!\n";
      sysseek($to, $at, 0);
      for (my $done = 0; $done < $copied;) { $done += syswrite($to, $text, $copied - $done, $done) // die "$!\n" }
    }
    die "$!\n" if $copied < 0;
    die "the file below has changed\n" if $copied == 0;
    ($at, $length) = ($at + $copied, $length - $copied);
  }
}

# All of it first: a program that is started meanwhile must not share what is read ahead.
for my $line (my @lines = <STDIN>) {
  chomp $line;
  my ($path, $size, $hash, $gaps) = split / /, $line;
  fill(pack("H*", $path), $size, $hash, map { [split /-/] } split /,/, $gaps // "");
}
`}`;

/**
 * Takes out of a difference what its large files have in common with those of the earlier layer. All three are as
 * `keepDifference` has left them.
 *
 * @throws {SandgateError} `internal_error`
 */
export async function keepBlocks(copy: string, later: string, earlier: string): Promise<BlockFile[]> {
  const sizes = [blockBytes, fileBytesMin, pathBytesMax, rangesMax, filesMax].map(String);
  const argv = ["--pdeathsig", "KILL", "perl", "-e", keepScript, ...callNumbers, ...sizes, copy, later, earlier];
  const result = await runBulk("setpriv", argv, { timeoutMs });
  if (result.exitCode !== 0) throw failure("find out which blocks have changed since an earlier snapshot", result.stderr);
  return result.stdout.split("\n").filter(Boolean).map(parsed);
}

function parsed(line: string): BlockFile {
  const [path = "", size = "", sha256 = "", kept = ""] = line.split(" ");
  const ranges = kept.split(",").filter(Boolean);
  return { path, size: Number(size), sha256, kept: ranges.map((range) => range.split("-").map(Number) as [number, number]) };
}

/**
 * Fills the files of an unpacked difference from the layers below it, topmost first.
 *
 * @param bytesMax what this may take, if nothing is shared
 * @throws {SandgateError} `internal_error` if a file does not become what it was; `insufficient_storage`
 */
export async function fillBlocks(dir: string, below: readonly string[], files: readonly BlockFile[], bytesMax: number): Promise<void> {
  const input = files.map((file) => `${file.path} ${file.size} ${file.sha256} ${gapsOf(file).join(",")}\n`).join("");
  const argv = ["--pdeathsig", "KILL", "perl", "-e", fillScript, ...callNumbers, String(bytesMax), dir, ...below];
  const result = await runBulk("setpriv", argv, { timeoutMs, input });
  if (result.exitCode !== 0) throw failure("put a snapshot's files together", result.stderr);
}

/** What is not kept, as lines of `fillScript` have it. */
function gapsOf({ kept, size }: BlockFile): string[] {
  const begins = [0, ...kept.map(([, end]) => end)];
  const ends = [...kept.map(([begin]) => begin), size];
  return begins.flatMap((begin, index) => (begin < (ends[index] ?? 0) ? [`${begin}-${ends[index]}`] : []));
}
