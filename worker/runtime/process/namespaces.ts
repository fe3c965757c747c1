/**
 * Programs that change their namespaces or their user before they do their work. They are scripts in Perl, for which no program has to
 * be loaded (`helper-script.ts`): one of `nsenter`, `unshare` or `setpriv` would take longer than the work.
 */
import { arch } from "node:process";

/** The numbers of setns(2), unshare(2) and mount(2). */
const [setns, unshare, mount] = arch === "arm64" ? ["268", "97", "40"] : ["308", "272", "165"];

const enter = String.raw`
sub enter {
  my ($setns, $pid, $name, $kind) = @_;
  open(my $namespace, "<", "/proc/$pid/ns/$name") or die "the $name namespace: $!\n";
  syscall($setns + 0, fileno($namespace), $kind) == 0 or die "the $name namespace cannot be entered: $!\n";
}
`;

const become = String.raw`exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\n";`;

/** The command that runs another one with mounts of its own, and which nobody ends by closing what it writes to. */
export const withOwnMounts = (command: readonly string[]): string[] => {
  const script = String.raw`
my ($unshare, $mount, $recursive_private, $none, $root) = (shift() + 0, shift() + 0, 0x44000, "none", "/");
$SIG{PIPE} = "IGNORE";
syscall($unshare, 0x20000) == 0 && syscall($mount, $none, $root, 0, $recursive_private, 0) == 0 or die "mounts of its own: $!\n";
${become}`;
  return ["perl", "-e", script, unshare, mount, ...command];
};

/** What is done in namespaces of a process. */
export interface Inside {
  readonly pid: number;
  /** Values by the files into which they are written as the superuser of its user namespace. */
  readonly values: Readonly<Record<string, string>>;
  /** The program that is run in its network afterwards; undefined for none. */
  readonly command: readonly string[] | undefined;
}

/** The command that does that. */
export const inNamespacesOf = ({ pid, values, command = [] }: Inside): string[] => {
  const script = String.raw`${enter}
my ($setns, $pid, $count) = splice(@ARGV, 0, 3);
my %values = splice(@ARGV, 0, 2 * $count);
enter($setns, $pid, "net", 0x40000000) if @ARGV;
if ($count) {
  enter($setns, $pid, "user", 0x10000000);
  ($( , $)) = (0, "0 0");
  ($<, $>) = (0, 0);
}
for my $path (keys %values) {
  my $file;
  open($file, ">", $path) && syswrite($file, $values{$path}) or die "$path: $!\n";
}
if (@ARGV) { ${become} }`;
  const written = Object.entries(values);
  return ["perl", "-e", script, setns, String(pid), String(written.length), ...written.flat(), ...command];
};
