/** What the worker and the exec server of a sandbox say to each other; `server.c` has the other side. */

import type { Size } from "../container/command.ts";

/** The most that the server takes in one message. */
const messageBytesMax = 65_536;

/** A command as the server gets it. */
export interface ServedCommand {
  /** The path of its terminal in the sandbox, or what `ownTerminal` says; undefined for one with pipes. */
  readonly terminal: string | undefined;
  readonly process: { readonly cwd: string; readonly args: readonly string[]; readonly env: readonly string[] };
}

/** The message that starts a command; undefined when the command is too large for one. */
export const messageOf = ({ terminal = "", process: { cwd, args, env } }: ServedCommand): Buffer | undefined =>
  fieldsOf([terminal, cwd, String(args.length), ...args, ...env]);

/** A terminal of this size, which the command's keeper opens and has. Servers of earlier versions take it for a mistake. */
export const ownTerminal = ({ rows, cols }: Size): string => `${rows} ${cols}`;

/** Whether a terminal is one that the worker has opened: then nothing but the keeper's reports leads to the worker. */
export const isWorkers = (terminal: string | undefined): boolean => terminal?.startsWith("/") === true;

/** What the keeper of a terminal is told: the terminal's size, to hold it still, which it answers, or to go on. */
export const words = { size: (size: Size): string => `${ownTerminal(size)}\n`, hold: "H\n", goOn: "G\n" } as const;

/** The message that hands other descriptors to the keeper of a terminal. */
export const handOverMessage = (keeper: number): Buffer => Buffer.from(`@${keeper}`);

/** The message that puts the commands to come into these groups. */
export const groupsMessage = (gids: readonly number[]): Buffer => Buffer.from(`+${gids.join(" ")}`);

/** What a keeper says of a message that it does not understand: its server is of an earlier version. */
export const mistakenStage = "m";

/**
 * The message for what the server does itself, as `files.c` has it; undefined when that is too large for one. Its arguments are
 * counted below zero, which servers of earlier versions take for a mistake, and report.
 */
export const ownWorkMessage = (args: readonly string[]): Buffer | undefined => fieldsOf(["", "/", String(-args.length), ...args]);

function fieldsOf(fields: readonly string[]): Buffer | undefined {
  if (fields.some((field) => field.includes("\0"))) return undefined;
  const message = Buffer.from(`${fields.join("\0")}\0`);
  return message.length <= messageBytesMax ? message : undefined;
}

/** What a command's keeper has to say, in this order. */
export type Report =
  /** The command is its own. `pid` is the keeper's, as the sandbox numbers processes. */
  | { readonly event: "kept"; readonly pid: number }
  | { readonly event: "started" }
  /** The terminal stands still. @property unread bytes that were typed, and that no program has read */
  | { readonly event: "held"; readonly unread: number }
  | { readonly event: "failed"; readonly stage: string; readonly errno: number }
  /** @property status as returned by wait(2) */
  | { readonly event: "ended"; readonly status: number };

/** Undefined for what no keeper says: the sandbox may have taken it over. */
export function reportOf(line: string): Report | undefined {
  const [word = "", one = "", other = ""] = line.split(" ");
  const isNumber = (text: string): boolean => /^\d{1,10}$/.test(text);
  if (word === "S" && !one) return { event: "started" };
  if (word === "K" && isNumber(one)) return { event: "kept", pid: Number(one) };
  if (word === "H" && isNumber(one)) return { event: "held", unread: Number(one) };
  if (word === "X" && isNumber(one)) return { event: "ended", status: Number(one) };
  if (word === "F" && /^[a-z]$/.test(one) && isNumber(other)) return { event: "failed", stage: one, errno: Number(other) };
  return undefined;
}
