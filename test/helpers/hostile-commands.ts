/**
 * What root's `npm start` does with commands and parts of the service user, run in a terminal by walls-terminal.test.ts.
 * Arguments: `type` or `draw`, and a folder for a log.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { loadConfig } from "../../shared/config.ts";
import { asAccount } from "../../systemd/base/as-account.ts";
import { messageOf } from "../../systemd/base/failure.ts";
import { run } from "../../systemd/base/run.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { findAccount } from "../../systemd/setup/account.ts";
import { hostChecksOf, printHost } from "../../systemd/supervisor/banner.ts";
import { parsePinoLine } from "../../systemd/supervisor/log-line.ts";
import { Part } from "../../systemd/supervisor/part.ts";

/** Types a line into every terminal that it can get hold of; says into which. */
const types = `
use POSIX;
my %names = (tty => "/dev/tty"); $names{$_} = "/proc/self/fd/$_" for 0 .. 20; $names{"of $_"} = "/proc/" . getppid() . "/fd/$_" for 0 .. 2;
for my $name (sort keys %names) {
  my ($done, $file) = (0, undefined);
  my $open = $name =~ /^\\d+$/ ? open($file, "+<&=", $name) : sysopen($file, $names{$name}, O_RDWR | O_NONBLOCK | O_NOCTTY);
  if ($open && -t $file) { $done++ while $done < 9 && ioctl($file, 0x5412, my $key = substr("injected\\n", $done, 1)); }
  print "typed into $name\\n" if $done;
}
open(my $stat, "<", "/proc/self/stat"); my @fields = split / /, <$stat>; print "terminal $fields[6]\\n";`;

/** The title, a cleared screen, a question that the terminal answers as if it were typed, and what reverses text. */
const sequences = "\u001b]0;owned\u0007\u001b[2J\u001b[5n\u009b31m\u202eend";

const [what, folder = "/"] = process.argv.slice(2);
const terminal = new Terminal(process.stdout);
const account = await findAccount(loadConfig());
if (what === "type") await type();
else await draw();
process.exit();

async function type(): Promise<void> {
  terminal.line(await run(asAccount(account, ["perl", "-e", types]), { cwd: "/" }));
  const [file = "", ...args] = asAccount(account, ["perl", "-e", types]);
  terminal.line(String(spawnSync(file, args, { env: { PATH: "/usr/bin:/bin" }, cwd: "/", stdio: ["ignore", "pipe", "pipe"] }).stdout));
  await partThat(["perl", "-e", types]);
}

async function draw(): Promise<void> {
  await run(asAccount(account, ["sh", "-c", 'printf %s "$1" >&2; exit 3', "sh", sequences])).catch((error) => terminal.bad(messageOf(error)));
  printHost(terminal, hostChecksOf({ host: { checks: [{ name: sequences, value: `${sequences}\nSandgate is ready.`, ok: true }] } }));
  await terminal.task("Building", "an image", async ({ say }) => say(sequences));
  terminal.line(terminal.paint("bold", sequences));
  await partThat(["printf", "%s\\n", sequences]);
}

/** As the supervisor runs one. */
async function partThat(command: readonly string[]): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  const spec = { name: "part", argv: asAccount(account, command), env: { PATH: "/usr/bin:/bin" }, cwd: "/", parse: parsePinoLine };
  const part = new Part(
    { ...spec, logFile: join(folder, "part.log"), notes: folder },
    { onLine: (_, { text }) => hear(text), onDeath: () => ended.resolve(), onRefusal: () => ended.resolve() },
  );
  const hear = (text: string): void => {
    terminal.warn(text);
    if (/terminal|owned/.test(text)) heard.resolve();
  };
  part.start();
  await Promise.all([ended.promise, heard.promise]);
  await part.stop(1_000);
}
