/** A streaming execution as the page reads it: NDJSON, a line at a time, as fast as the page can take it. */
import { send } from "../../api.ts";

export interface Chunk {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exit_code?: number;
  readonly error?: string;
  readonly code?: string;
}

export interface Execution {
  readonly command: string;
  readonly working_dir?: string;
  /** Seconds. */
  readonly timeout?: number;
}

/**
 * Starts a command and hands every chunk to `take`; while that is busy nothing is read, which slows the command.
 *
 * @throws {ApiError} when it could not be started; an AbortError when `signal` ended it
 */
export async function runStream(id: string, execution: Execution, signal: AbortSignal, take: (chunk: Chunk) => Promise<void> | undefined): Promise<void> {
  const response = await send("POST", `/v1/sandboxes/${encodeURIComponent(id)}/execute_async`, { body: execution, signal });
  try {
    await readLines(response, take);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error("The connection broke before the command had ended.", { cause: error });
  }
}

async function readLines(response: Response, take: (chunk: Chunk) => Promise<void> | undefined): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const lines = (rest + next.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line) await take(JSON.parse(line) as Chunk);
  }
}
