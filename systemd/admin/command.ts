/** What a command of `sandgate-admin` is. */
import type { AdminClient } from "./client.ts";
import type { Output } from "./output.ts";

/** Every option there is, as node:util's parseArgs wants them. Which command takes which, each says itself. */
export const options = {
  url: { type: "string" },
  "key-file": { type: "string" },
  json: { type: "boolean" },
  yes: { type: "boolean", short: "y" },
  help: { type: "boolean", short: "h" },
  email: { type: "string" },
  account: { type: "string" },
  worker: { type: "string" },
  tier: { type: "string" },
  "default-tier": { type: "boolean" },
  requests: { type: "string" },
  burst: { type: "string" },
  sandboxes: { type: "string" },
  "default-limits": { type: "boolean" },
  operator: { type: "boolean" },
  undo: { type: "boolean" },
} as const;

export type OptionName = keyof typeof options;
export type Values = { readonly [K in OptionName]?: ((typeof options)[K]["type"] extends "boolean" ? boolean : string) | undefined };

/** What a command works with. */
export interface Session {
  readonly client: AdminClient;
  readonly out: Output;
  readonly values: Values;
  /** What stands behind the name of the command. */
  readonly operands: readonly string[];
  /** Asks before what cannot be taken back. @throws {Error} unless the person agrees. */
  confirm(question: string): Promise<void>;
}

export interface Command {
  readonly name: string;
  /** The operands, as the help shows them. */
  readonly takes: string;
  readonly about: string;
  /** Beside those that every command takes. */
  readonly options: readonly OptionName[];
  /** How many operands. */
  readonly min: number;
  readonly max: number;
  run(session: Session): Promise<void>;
}
