/** Commands from before the page was opened, taken from the sandbox's log. */
import type { LogEntry, Logs } from "../../../../../shared/schemas/usage.ts";
import { call } from "../../api.ts";
import { timeAgo } from "../../components/bits.ts";
import { copyButton } from "../../components/button.ts";
import { fill, h } from "../../dom.ts";
import { duration } from "../../format.ts";
import { mark, outcomeOf, runHead } from "./run.ts";

const dayMs = 86_400_000;
/** Polling interval while one of them is still running. */
const againMs = 5_000;

/** One command of the log; its element is updated when it ends. */
export interface EarlierRun {
  readonly element: HTMLElement;
  readonly command: string;
}

/** The newest `most` commands of the last day, newest first, without live sessions, which belong to the terminal. */
export async function earlierRuns(id: string, most: number, signal: AbortSignal): Promise<EarlierRun[]> {
  const entries = (await read(id, most, signal)).filter(({ source }) => source !== "session");
  const shown = new Map<string, HTMLElement>();
  const runs = entries.map((entry) => {
    const element = h("details", "run card");
    show(element, entry);
    if (entry.execution_id !== undefined) shown.set(entry.execution_id, element);
    return { element, command: entry.command };
  });
  if (entries.some(isRunning)) void follow(id, most, shown, signal);
  return runs;
}

const isRunning = ({ status }: LogEntry): boolean => status === "running";

async function read(id: string, most: number, signal: AbortSignal): Promise<readonly LogEntry[]> {
  const from = new Date(Date.now() - dayMs).toISOString();
  const path = `/v1/sandboxes/logs?sandbox_id=${encodeURIComponent(id)}&limit=${most}&from=${encodeURIComponent(from)}`;
  return (await call<Logs>("GET", path, { signal })).logs;
}

/** Polls until all shown commands have ended or left the log, or the page is left. */
async function follow(id: string, most: number, shown: ReadonlyMap<string, HTMLElement>, signal: AbortSignal): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, againMs));
    if (signal.aborted) return;
    const entries = await read(id, most, signal).catch(() => undefined);
    const known = entries?.filter(({ execution_id }) => execution_id !== undefined && shown.has(execution_id));
    for (const entry of known ?? []) if (!isRunning(entry)) show(shown.get(entry.execution_id ?? "") as HTMLElement, entry);
    if (known && !known.some(isRunning)) return;
  }
}

function show(element: HTMLElement, entry: LogEntry): void {
  const { command, command_bytes, status, exit_code, execution_time_ms, timestamp, error } = entry;
  const outcome = outcomeOf(status, exit_code, error);
  const took = h("span", "run-time number", outcome.state === "running" || execution_time_ms === null ? "" : duration(execution_time_ms));
  const foot = h(
    "div",
    "run-foot",
    h("span", "run-status", h("span", {}, outcome.words), timeAgo(timestamp)),
    h(
      "div",
      "actions",
      copyButton(() => command, command_bytes === undefined ? "Copy command" : "Copy the beginning of the command"),
    ),
  );
  fill(element, runHead(command, h("span", "run-sign", mark(outcome)), took), outputOf(entry), foot);
  element.classList.toggle("silent", !entry.stdout && !entry.stderr && !isRunning(entry));
}

/** The logged output. The log keeps the two streams separately, and only the beginning of each. */
function outputOf({ stdout, stderr, stdout_truncated, stderr_truncated }: LogEntry): HTMLElement {
  const isCut = stdout_truncated || stderr_truncated;
  const cut = h("p", { class: "output-cut", hidden: !isCut }, "Output is cut: the log keeps the first 4 KiB of each stream.");
  const text = h("pre", { class: "output-text", tabindex: 0, "aria-label": "Output" }, stdout ? h("span", "stdout", stdout) : null);
  if (stderr) text.append(h("span", "stderr", stderr));
  return h("div", "output", cut, text);
}
