/** A session as lists show it. */
import type { SessionSummary } from "../../shared/bus/contract/sessions.ts";
import { Preview } from "../exec/output.ts";
import type { Session } from "./session.ts";

export function summaryOf({ call, createdAtMs, clients, ended }: Session): SessionSummary {
  const { session_id, command, terminal } = call;
  const status = ended ? "ended" : "running";
  return { session_id, ...shown(command), tty: terminal !== undefined, created_at_ms: createdAtMs, attached: clients, status };
}

/** Only the beginning of a long command, with its full length, because many long commands would not fit into one answer. */
function shown(command: string | undefined): Pick<SessionSummary, "command" | "command_bytes"> {
  if (command === undefined) return { command: null };
  const bytes = Buffer.from(command);
  const beginning = new Preview();
  beginning.add(bytes);
  return { command: beginning.text, ...(beginning.truncated ? { command_bytes: bytes.length } : {}) };
}
