/** Reads a streaming execution: NDJSON, line by line, at the speed of the page. */
import { type Line, linesOf } from "../../../../../shared/client/execution.ts";
import { send } from "../../api.ts";

export interface Execution {
  readonly command: string;
  readonly working_dir?: string;
  /** Seconds. */
  readonly timeout?: number;
}

/**
 * Starts a command and passes every chunk to `take`. While `take` is busy nothing is read, which slows the command down.
 *
 * @throws {APIError} when the command could not be started; an AbortError when `signal` ended it
 */
export async function runStream(id: string, execution: Execution, signal: AbortSignal, take: (chunk: Line) => Promise<void> | undefined): Promise<void> {
  const { body } = await send("POST", `/v1/sandboxes/${encodeURIComponent(id)}/execute_async`, { body: execution, signal });
  try {
    for await (const line of linesOf(body)) await take(line);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error("The connection broke before the command had ended.", { cause: error });
  }
}
