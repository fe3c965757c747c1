/** The standard streams of a command that is written to while it runs: a terminal, or three pipes. */
import { closeSync } from "node:fs";
import { channels, type OutputChannel } from "../../../shared/stream/session/protocol.ts";
import type { Container } from "../container/container.ts";
import type { Started } from "../container/oci.ts";
import { type ProcessSpec, reaped, reapedInTerminal } from "../container/start.ts";
import { InputWriter } from "./input.ts";
import type { PipePool, PipeReader } from "./pipes.ts";
import type { Descriptors } from "./spawner.ts";
import type { Size, Terminals } from "./terminals.ts";

/** What Ctrl-D sends: a terminal takes it for the end of input. */
const endOfFile = Uint8Array.of(0x04);

/**
 * Makes the terminal $0 the controlling one and runs "$@" in it. The leader of a session does so by opening it, and runc
 * and newer versions of crun start a command as one. For older ones setsid does both; an image without that program gets
 * a terminal without job control there.
 */
const entering = `read -r pid name state parent group session rest < /proc/$$/stat
exec <> "$0" >&0 2>&0
if [ "$session" != $$ ] && command -v setsid > /dev/null; then exec setsid -c "$@"; fi
exec "$@"`;

export interface InteractiveSpec extends ProcessSpec {
  /** The size of its terminal; undefined for pipes. */
  readonly terminal: Size | undefined;
}

/** What the command writes, by channel. */
export interface Output {
  readonly channel: OutputChannel;
  readonly reader: PipeReader;
}

interface Streams {
  readonly outputs: readonly Output[];
  readonly input: InputWriter;
  /** Without effect on a command that has no terminal. */
  resize(size: Size): void;
  /** Gives our ends up; what was not read is lost. */
  close(): void;
}

export interface Interactive extends Started, Streams {
  /** Signals the foreground processes of the terminal, or those of the command. */
  signal(name: NodeJS.Signals): Promise<void>;
}

interface Parts {
  readonly container: Container;
  readonly spec: InteractiveSpec;
  readonly pipes: PipePool;
  readonly terminals: Terminals;
  readonly onTaken: (bytes: number) => void;
}

/** `argv` and `descriptors` are for the runtime; `release` closes what only the command uses. */
type NewStreams = Streams & { readonly argv: readonly string[]; readonly descriptors: Descriptors; release(): void };

export function streamsOf(parts: Parts): Promise<NewStreams> {
  return parts.spec.terminal ? inTerminal(parts, parts.spec.terminal) : throughPipes(parts);
}

async function inTerminal({ container, spec, terminals, onTaken }: Parts, size: Size): Promise<NewStreams> {
  const terminal = await terminals.open(container, size);
  const input = new InputWriter({ fd: terminal.fd, endOfFile }, onTaken);
  return {
    argv: ["/bin/sh", "-c", entering, terminal.path, ...reapedInTerminal(container, spec.args)],
    descriptors: {},
    outputs: [{ channel: channels.stdout, reader: terminal.reader }],
    input,
    resize: (next) => terminal.resize(next),
    release: () => {},
    close: () => {
      input.close();
      terminal.close();
    },
  };
}

async function throughPipes({ spec, pipes, onTaken }: Parts): Promise<NewStreams> {
  const stdin = await pipes.takeInput();
  const [stdout, stderr] = await pipes.takeTwo().catch((error: unknown) => {
    closeSync(stdin.readFd);
    closeSync(stdin.writeFd);
    throw error;
  });
  const input = new InputWriter({ fd: stdin.writeFd, endOfFile: undefined }, onTaken);
  return {
    argv: reaped(spec.args),
    descriptors: { stdin: stdin.readFd, stdout: stdout.writeFd, stderr: stderr.writeFd },
    outputs: [
      { channel: channels.stdout, reader: stdout.reader },
      { channel: channels.stderr, reader: stderr.reader },
    ],
    input,
    resize: () => {},
    // Ours of the input stays open until the command has ended: what it leaves unread is dropped then.
    release: () => [stdin.readFd, stdout.writeFd, stderr.writeFd].forEach((fd) => closeSync(fd)),
    close: () => {
      input.close();
      stdout.reader.close();
      stderr.reader.close();
    },
  };
}
