/**
 * The program of the helper process, which starts programs for the worker. Forking a process this small takes a fraction of a
 * millisecond; forking the worker would hold up everything else for many. Written in Perl, which is part of every Debian.
 *
 * Arguments: the numbers of signalfd4(2) and rt_sigprocmask(2) on this machine.
 * Input: messages made of a length in bytes, a line feed, and that many bytes of NUL-separated fields, those of `start`.
 * Output: lines "started ID PID", "failed ID REASON", "ended ID STATUS", with the status as returned by wait(2).
 *
 * The program `perl -e SCRIPT` is run by the child itself, which is a Perl already: to load one takes longer than most scripts.
 */
export const helperScript = String.raw`
use strict;

my ($signalfd, $sigprocmask) = map { $_ + 0 } @ARGV;
my ($close_range, $on_exec) = (436, 4);
my ($block, $unblock, $set_flags, $no_hang, $non_blocking, $non_blocking_on_exec_closed) = (0, 1, 4, 1, 04000, 02004000);
my $worker = getppid();
my ($pidfd_open, $pidfd_getfd) = (434, 438);
my $child_ended = pack("Q", 1 << 16);
my %ids;

# What this process itself was given beside its streams is none of theirs.
syscall($close_range, 3, 0xffffffff, $on_exec);
my $worker_fd = syscall($pidfd_open, $worker, 0);

# A copy of its own, which no program inherits: a child whose program cannot be run says so by it.
open(my $events, ">&", \*STDOUT) or die;
sub report { syswrite($events, join(" ", @_) =~ s/\s+/ /gr . "\n") }

# The worker decides when it needs no more programs, for its shutdown takes some. A program gets these signals as usual.
$SIG{$_} = sub { } for qw(INT TERM HUP);

# Sockets cannot be opened by name.
sub socket_of {
  my $copy = syscall($pidfd_getfd, $worker_fd, $_[0] + 0, 0);
  return if $copy < 0;
  open(my $stream, "+<&=", $copy);
  return $stream;
}

# What descriptor $fd of the worker is, opened anew: without waiting, as the other end of a pipe may be closed by now.
sub opened {
  my ($fd, $mode) = @_;
  sysopen(my $stream, $fd eq "" ? "/dev/null" : "/proc/$worker/fd/$fd", $mode | $non_blocking) or return socket_of($fd);
  fcntl($stream, $set_flags, $mode) or return;
  return $stream;
}

sub set { my ($path, $value) = @_; open(my $file, ">", $path) or return; return syswrite($file, $value) }

# Is a program in Perl.
sub be {
  (my $script, @ARGV) = @_;
  $SIG{$_} = "DEFAULT" for qw(INT TERM HUP);
  eval "package script; $script";
  print STDERR $@;
  exit($@ ? 1 : 0);
}

sub start {
  my ($id, $folder, $has_group, $niceness, $oom_score_adj, $entrances, $in, $out, $err, @command) = @_;
  my ($stdin, $stdout, $stderr) = (opened($in, 0), opened($out, 1), opened($err, 1));
  return report("failed", $id, "its streams could not be opened: $!") unless $stdin && $stdout && $stderr;
  my $pid = fork;
  return report("failed", $id, "fork: $!") unless defined $pid;
  # By both, as nobody knows who comes first.
  setpgrp($pid, $pid) if $has_group;
  if ($pid) { $ids{$pid} = $id; return report("started", $id, $pid) }

  syscall($sigprocmask, $unblock, $child_ended, 0, 8);
  setpriority(0, 0, getpriority(0, 0) + $niceness) if $niceness;
  set("/proc/self/oom_score_adj", $oom_score_adj) if $oom_score_adj;
  # A command that is not in its sandbox's group would have no limits.
  for my $entrance (split /\n/, $entrances) {
    next if set($entrance, 0);
    report("failed", $id, "$entrance: $!");
    exit 127;
  }
  open(STDIN, "<&", $stdin); open(STDOUT, ">&", $stdout); open(STDERR, ">&", $stderr);
  if ($folder eq "" || chdir $folder) {
    be(@command[2 .. $#command]) if @command > 2 && "@command[0, 1]" eq "perl -e";
    no warnings;
    exec { $command[0] } @command;
  }
  report("failed", $id, "$command[0] could not be run: $!");
  exit 127;
}

syscall($sigprocmask, $block, $child_ended, 0, 8) == 0 or die;
my $ended = syscall($signalfd, -1, $child_ended, 8, $non_blocking_on_exec_closed);
open(my $signals, "<&=", $ended) or die;
my ($wanted, $buffer) = ("", "");
vec($wanted, $_, 1) = 1 for fileno(STDIN), $ended;
while (1) {
  next if select(my $ready = $wanted, undef, undef, undef) < 0;
  if (vec($ready, $ended, 1)) {
    sysread($signals, my $drained, 4096);
    while ((my $pid = waitpid(-1, $no_hang)) > 0) { report("ended", delete $ids{$pid}, $?) }
  }
  if (vec($ready, fileno(STDIN), 1)) {
    sysread(STDIN, $buffer, 65536, length $buffer) or exit;
    while ($buffer =~ /\A(\d+)\n/ && length $buffer >= $+[0] + $1) {
      my ($at, $length) = ($+[0], $1);
      start(split /\0/, substr($buffer, $at, $length), -1);
      substr($buffer, 0, $at + $length) = "";
    }
  }
}
`;
