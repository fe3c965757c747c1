/** The standard streams of an interactive command: a terminal, or three pipes. */
import { channels } from "../../../shared/stream/session/protocol.ts";
import { InputWriter } from "../process/input.ts";
import { openStreams } from "../process/pipes.ts";
import type { Descriptors } from "../process/program.ts";
import type { Interactive, InteractiveSpec, Size } from "./command.ts";
import type { Container } from "./container.ts";
import { type CommandLine, reaped, reapedInTerminal } from "./start.ts";
import { openHostTerminal, openTerminal } from "./terminals.ts";

/** What Ctrl-D sends: a terminal interprets it as the end of input. */
const endOfFile = Uint8Array.of(0x04);

/**
 * Makes the terminal $0 the controlling one and runs "$@" in it. A session leader does so by opening the terminal; runc and newer
 * versions of crun start a command as one. With older ones, setsid does both; if the image lacks that program, the terminal
 * has no job control.
 */
const entering = `read -r pid name state parent group session rest < /proc/$$/stat
exec <> "$0" >&0 2>&0
if [ "$session" != $$ ] && command -v setsid > /dev/null; then exec setsid -c "$@"; fi
exec "$@"`;

/** The command line and `theirs` are for the runtime. */
interface NewStreams extends Pick<Interactive, "outputs" | "input" | "resize" | "close">, CommandLine {
  readonly theirs: Descriptors;
}

/** @param onTaken receives the number of input bytes that the command took, or never will. */
export function streamsOf(container: Container, { args, terminal }: InteractiveSpec, onTaken: (bytes: number) => void): NewStreams {
  return terminal ? inTerminal(container, args, terminal, onTaken) : throughPipes(args, onTaken);
}

function inTerminal(container: Container, args: readonly string[], size: Size, onTaken: (bytes: number) => void): NewStreams {
  const isStrong = container.isolation === "strong";
  const terminal = isStrong ? openHostTerminal(size) : openTerminal(container, size);
  const input = new InputWriter({ fd: terminal.fd, endOfFile }, onTaken);
  const command = reapedInTerminal(container, args);
  return {
    ...(isStrong ? { argv: command, hostTerminal: terminal.path } : { argv: ["/bin/sh", "-c", entering, terminal.path, ...command] }),
    theirs: {},
    outputs: [{ channel: channels.stdout, reader: terminal.reader }],
    input,
    resize: (next) => terminal.resize(next),
    close: () => {
      input.close();
      terminal.close();
    },
  };
}

function throughPipes(args: readonly string[], onTaken: (bytes: number) => void): NewStreams {
  const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: true });
  const input = new InputWriter({ fd: stdinFd, endOfFile: undefined }, onTaken);
  return {
    argv: reaped(args),
    theirs,
    outputs: [
      { channel: channels.stdout, reader: stdout },
      { channel: channels.stderr, reader: stderr },
    ],
    input,
    resize: () => {},
    close: () => {
      input.close();
      stdout.close();
      stderr.close();
    },
  };
}
