/** `exec`, `attach`, `sessions`. */
import type { Command } from "commander";
import type { SandboxHandle } from "../../client/sandbox.ts";
import { exitCodes, UsageError } from "../failures.ts";
import { findSandbox, pick } from "../names.ts";
import { ago, oneLine } from "../output.ts";
import { type CommonOptions, command, exit, given, taskOf } from "../task.ts";
import { converse, terminalSize } from "../terminal.ts";
import { commandLine, variable, whole } from "../values.ts";

interface ExecOptions extends CommonOptions {
  readonly interactive?: true;
  readonly tty?: true;
  readonly workdir?: string;
  readonly env?: Record<string, string>;
  readonly timeout?: number;
  readonly detachTimeout?: number;
}

/** How long a session with a terminal waits after the user has detached. */
const detachTimeoutS = 3_600;

/** @param given includes the `--` before the command, if the user typed it */
async function exec(name: string, given: string[], options: ExecOptions): Promise<void> {
  const words = given[0] === "--" ? given.slice(1) : given;
  const { interactive, tty, json } = options;
  if (words.length === 0 && !tty) throw new UsageError("which command? Without one, -it opens a shell");
  if (tty && json) throw new UsageError("a terminal has no JSON");
  if (tty && interactive && process.stdin.isTTY !== true) throw new UsageError("standard input is not a terminal: omit -t");
  const { client } = await taskOf(options);
  const sandbox = await findSandbox(client, name);
  await exit(await run(sandbox, words, options));
}

/** How long a command without a terminal waits after its connection was lost. */
const lostTimeoutS = 60;

/** Runs the command as a session, because its output is bytes. @returns the exit code */
async function run(sandbox: SandboxHandle, words: readonly string[], options: ExecOptions): Promise<number> {
  const { workdir, env, tty, interactive, timeout, json } = options;
  const session = await sandbox.session({
    ...given({ command: words.length > 0 ? commandLine(words) : undefined, working_dir: workdir || undefined, timeout }),
    tty: tty ?? false,
    ...(tty ? terminalSize() : {}),
    ...(env || tty ? { env: { ...(tty ? { TERM: "xterm-256color" } : {}), ...env } } : {}),
    detach_timeout: options.detachTimeout ?? (tty ? detachTimeoutS : lostTimeoutS),
  });
  if (!interactive && !tty) await session.closeStdin();
  return converse(session, { sandboxId: sandbox.id, reads: interactive ?? false, json: json ?? false });
}

async function attach(name: string, id: string, options: CommonOptions & { since?: number; readOnly?: true; takeover: boolean }): Promise<void> {
  const { client } = await taskOf(options);
  const sandbox = await findSandbox(client, name);
  const known = (await sandbox.sessions()).map((session) => ({ ...session, id: session.session_id, name: session.command ?? "" }));
  const { session_id } = pick("session", known, id);
  const { since = 0, readOnly, takeover } = options;
  const session = await sandbox.attach(session_id, { since, ...(readOnly ? { read_only: true } : { takeover }) });
  await exit(await converse(session, { sandboxId: sandbox.id, reads: !readOnly, json: options.json ?? false }));
}

async function sessions(name: string, options: CommonOptions): Promise<void> {
  const { client, out } = await taskOf(options);
  const data = await (await findSandbox(client, name)).sessions();
  const rows = data.map((one) => [one.session_id, one.status, one.tty ? "yes" : "no", one.attached, ago(one.created_at), oneLine(one.command ?? "(shell)")]);
  out.show({ data }, () => out.table(["ID", "STATUS", "TERMINAL", "ATTACHED", "STARTED", "COMMAND"], rows));
}

const execHelp = `
A single word is a command line for the sandbox's /bin/sh; several words are a program and its arguments.
The exit code is the command's. ${exitCodes.own} means that it could not be run or its end is unknown, 126 that it cannot be
executed, 127 that the program was not found.

Examples:
  sandgate exec web -- python3 -c 'print(6 * 7)'
  sandgate exec web 'cat /etc/os-release | head -n 1'
  sandgate exec -it web                                  a shell; ctrl-p ctrl-q leaves it running
  tar c src | sandgate exec -i web -- tar x -C /work`;

export function execCommands(): Command[] {
  return [
    command("exec SANDBOX [COMMAND...]", "run a command in a sandbox, with its output and exit code")
      .option("-i, --interactive", "pass standard input to it")
      .option("-t, --tty", "give it a terminal")
      .option("-w, --workdir <path>", "the folder to run it in")
      .option("-e, --env <name=value>", "an environment variable; may be repeated", variable)
      .option("--timeout <seconds>", "end it after this time with exit code 124", whole("--timeout", 1))
      .option("--detach-timeout <seconds>", "how long it goes on without a connection (default: a minute, with -t an hour)", whole("--detach-timeout", 0))
      .passThroughOptions()
      .addHelpText("after", execHelp)
      .action(exec),
    command("attach SANDBOX SESSION", "join a running session, from where its output is still kept")
      .option("--since <offset>", "skip output before this byte", whole("--since", 0))
      .option("--read-only", "only watch")
      .option("--no-takeover", "do not take over the input from another client")
      .action(attach),
    command("sessions SANDBOX", "list the sessions of a sandbox").action(sessions),
  ];
}
