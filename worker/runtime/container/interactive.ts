/** The standard streams of an interactive command: a terminal, which its keeper or the worker has, or three pipes. */
import { closeSync, writeSync } from "node:fs";
import { channels } from "../../../shared/stream/session/protocol.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { openPipe } from "../../../shared/util/libc.ts";
import { words } from "../exec-server/message.ts";
import { InputWriter } from "../process/input.ts";
import { openStreams, PipeReader } from "../process/pipes.ts";
import type { Descriptors } from "../process/program.ts";
import type { Interactive, InteractiveSpec, Size } from "./command.ts";
import type { Container } from "./container.ts";
import type { CommandTerminal } from "./start.ts";
import { openHostTerminal, openTerminal } from "./terminals.ts";

/** What Ctrl-D sends: a terminal interprets it as the end of input. */
const endOfFile = Uint8Array.of(0x04);

/** The terminal, or the descriptors, are for the command. */
interface NewStreams extends Pick<Interactive, "outputs" | "input" | "resize" | "close"> {
  readonly theirs: Descriptors;
  readonly terminal: CommandTerminal | undefined;
}

/**
 * Pipes to a terminal that the command's keeper has: `stderr` of what is for the keeper leads words to it.
 *
 * @param onTaken receives the number of input bytes that the keeper took, or never will.
 */
export function toKeeper(onTaken: (bytes: number) => void): Omit<NewStreams, "terminal"> & { readonly say: (words: string) => void } {
  const [output, typed, said] = [openPipe(), openPipe(), openPipe()];
  const reader = new PipeReader(output.readFd);
  const input = new InputWriter({ fd: typed.writeFd, endOfFile }, onTaken);
  let isOpen = true;
  // A keeper that has taken none of hundreds takes none any more.
  const say = (text: string): void => void (isOpen && attempt(() => writeSync(said.writeFd, text)));
  return {
    say,
    theirs: { stdin: typed.readFd, stdout: output.writeFd, stderr: said.readFd },
    outputs: [{ channel: channels.stdout, reader }],
    input,
    resize: (size) => say(words.size(size)),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      input.close();
      reader.close();
      closeSync(typed.writeFd);
      closeSync(said.writeFd);
    },
  };
}

/** @param onTaken receives the number of input bytes that the command took, or never will. */
export function streamsOf(container: Container, { terminal }: InteractiveSpec, onTaken: (bytes: number) => void): NewStreams {
  return terminal ? inTerminal(container, terminal, onTaken) : throughPipes(container, onTaken);
}

function inTerminal(container: Container, size: Size, onTaken: (bytes: number) => void): NewStreams {
  const isHosts = container.isolation === "strong";
  const terminal = isHosts ? openHostTerminal(size) : openTerminal(container, size);
  const input = new InputWriter({ fd: terminal.fd, endOfFile }, onTaken);
  return {
    terminal: { path: terminal.path, isHosts },
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

function throughPipes(owner: Container, onTaken: (bytes: number) => void): NewStreams {
  const { stdout, stderr, stdinFd, theirs } = openStreams({ hasInput: true, owner });
  const input = new InputWriter({ fd: stdinFd, endOfFile: undefined }, onTaken);
  return {
    terminal: undefined,
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
