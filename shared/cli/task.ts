/** The context of a command, and how it ends. */

import { Command } from "commander";
import { NotFoundError } from "../client/errors.ts";
import { Sandgate } from "../client/index.ts";
import type { DeletedAll } from "../client/types.ts";
import { confirm } from "./confirm.ts";
import { Told, textOf, UsageError } from "./failures.ts";
import { Output, say } from "./output.ts";
import { findAccess } from "./settings.ts";

/** The options of every command. */
export interface CommonOptions {
  readonly json?: true;
  readonly url?: string;
}

export interface Task {
  readonly client: Sandgate;
  readonly out: Output;
}

/** @throws {CliError} if there is no API key */
export async function taskOf({ json, url }: CommonOptions): Promise<Task> {
  return { client: new Sandgate({ ...(await findAccess(url)), onRateLimited: tellWait }), out: new Output(json ?? false) };
}

/** Reports waits for the rate limit. Commands continue by themselves, as one may need more calls than a minute allows. */
export function tellWait(waitMs: number): void {
  say(`sandgate: request limit reached; continuing in ${Math.ceil(waitMs / 1_000)} s`);
}

/** Runs the work for each name; a failure does not stop the others. @throws {Told} if any has failed */
export async function forEach(names: readonly string[], work: (name: string) => Promise<void>): Promise<void> {
  let failures = 0;
  for (const name of names) {
    try {
      await work(name);
    } catch (error) {
      failures++;
      say(`sandgate: ${textOf(error)}`);
    }
  }
  if (failures > 0) throw new Told(`${failures} of ${names.length} failed`);
}

/** Ends the process after all output has been written. */
export function exit(code: number): never | Promise<never> {
  return new Promise(() => {
    process.exitCode = code;
    // In the next turn, so that an output error is reported first.
    process.stdout.write("", () => process.stderr.write("", () => setImmediate(() => process.exit(code))));
  });
}

/** @param usage name and operands in commander's notation, such as `rm [SANDBOX...]` */
export function command(usage: string, about: string): Command {
  const [name, ...operands] = usage.split(" ");
  const made = new Command(name);
  for (const operand of operands) made.argument(operand.startsWith("[") ? operand : `<${operand}>`);
  return made
    .description(about)
    .option("--json", "print JSON for programs")
    .option("--url <url>", "the gateway (default: SANDGATE_URL, else the one stored by login)")
    .helpOption("-h, --help", "show this help");
}

/** The fields that have a value, for options of the client. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

export interface RemoveOptions extends CommonOptions {
  readonly all?: true;
  readonly force?: true;
}

/** How `rm` deletes sandboxes, and `snapshots rm` snapshots. */
interface Removal {
  readonly kind: "sandboxes" | "snapshots";
  /** The question before all are deleted. */
  readonly question: string;
  readonly all: (client: Sandgate) => Promise<DeletedAll>;
  /** Deletes the one with this name. @returns its id and the API's answer */
  readonly one: (client: Sandgate, name: string) => Promise<{ readonly id: string; readonly answer: unknown }>;
}

/** @throws {UsageError} for neither names nor `--all`, or both */
export async function remove(names: readonly string[], options: RemoveOptions, { kind, question, all, one }: Removal): Promise<void> {
  if (options.all ? names.length > 0 : names.length === 0)
    throw new UsageError(options.all ? "--all takes no names" : `which ${kind}? Name them, or give --all`);
  const { client, out } = await taskOf(options);
  if (options.all) {
    if (!options.force) await confirm(question, "--force");
    const answer = await all(client);
    return out.show(answer, () => answer.deleted_ids.forEach((id) => out.line(id)));
  }
  await forEach(names, async (name) => {
    try {
      const { id, answer } = await one(client, name);
      out.show(answer, () => out.line(id));
    } catch (error) {
      if (!(options.force && isMissing(error))) throw error;
    }
  });
}

/** Whether nothing has this name, which `rm --force` ignores. */
const isMissing = (error: unknown): boolean => error instanceof NotFoundError || (error instanceof Error && error.message.startsWith("there is no "));
