/** One command started in this page: its output, its state, and a button to stop it. */
import { linesOf } from "../../../../../shared/client/execution.ts";
import type { StreamLine } from "../../../../../shared/schemas/executions.ts";
import { send } from "../../api.ts";
import { messageOf, requestIdOf } from "../../components/bits.ts";
import { button, copyButton } from "../../components/button.ts";
import { type IconName, icon } from "../../components/icons.ts";
import { type Child, fill, h } from "../../dom.ts";
import { duration } from "../../format.ts";
import { Output } from "./output.ts";

const tickMs = 100;
/** The exit code of a timeout. A program may also exit with it, but hardly at the moment of its timeout. */
const timeoutExitCode = 124;

export interface Run {
  readonly element: HTMLElement;
  /** Resolves when the command has ended in any way; never rejects. */
  readonly done: Promise<void>;
}

/** Starts the command at once. It is killed when the page is left. */
export function startRun(id: string, execution: Execution, pageSignal: AbortSignal): Run {
  const stop = new AbortController();
  const output = new Output();
  const startedAt = performance.now();
  const elapsed = h("span", "run-time number");
  const status = h("span", { class: "run-status", role: "status", "aria-live": "polite" });
  const stopButton = button({ label: "Stop", icon: "stop", size: "small", onClick: () => stop.abort() });
  const copyCommand = copyButton(() => execution.command, "Copy command");
  const sign = h("span", "run-sign", mark(running));
  const head = runHead(execution.command, sign, elapsed);
  const foot = h("div", "run-foot", status, h("div", "actions", copyCommand, stopButton));
  const element = h("details", { class: "run card", open: true }, head, output.element, foot);
  const tick = (): string => (elapsed.textContent = duration(performance.now() - startedAt));
  const timer = setInterval(tick, tickMs);
  const tell = (outcome: Outcome, ...more: Child[]): void => {
    fill(sign, mark(outcome));
    fill(status, h("span", {}, outcome.words), ...more);
  };
  tell(running);

  let last: StreamLine | undefined;
  const take = (chunk: StreamLine): Promise<void> | undefined => {
    if (chunk.stdout) return output.add("stdout", chunk.stdout);
    if (chunk.stderr) return output.add("stderr", chunk.stderr);
    if (chunk.exit_code !== undefined || chunk.error !== undefined) last = chunk;
    return undefined;
  };
  const work = async (): Promise<void> => {
    try {
      await runStream(id, execution, AbortSignal.any([stop.signal, pageSignal]), take);
      const isLate = execution.timeout !== undefined && performance.now() - startedAt >= execution.timeout * 1_000;
      tell(isLate && last?.exit_code === timeoutExitCode ? outcomeOf("timeout", timeoutExitCode) : endOf(last));
    } catch (error) {
      if (stop.signal.aborted) tell(stopped);
      else tell(failure(messageOf(error)), requestIdOf(error));
    } finally {
      clearInterval(timer);
      tick();
      output.flush();
      stopButton.remove();
      element.classList.add(output.isEmpty ? "silent" : "spoke");
    }
  };
  return { element, done: work() };
}

/** The part of a command's entry that is visible while it is closed. */
export function runHead(command: string, ...about: HTMLElement[]): HTMLElement {
  return h("summary", "run-head", icon("chevron"), h("code", "run-command", command), ...about);
}

function endOf(last: StreamLine | undefined): Outcome {
  return last?.exit_code === undefined ? failure(last?.error ?? "The stream ended early.") : exited(last.exit_code);
}

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
async function runStream(id: string, execution: Execution, signal: AbortSignal, take: (chunk: StreamLine) => Promise<void> | undefined): Promise<void> {
  const { body } = await send("POST", `/v1/sandboxes/${encodeURIComponent(id)}/execute_async`, { body: execution, signal });
  try {
    for await (const line of linesOf(body)) await take(line);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error("The connection broke before the command had ended.", { cause: error });
  }
}

type State = "running" | "succeeded" | "failed" | "stopped" | "timeout";

export interface Outcome {
  readonly state: State;
  /** Such as "Failed with exit code 2". */
  readonly words: string;
  /** Set when it says more than the state. */
  readonly exitCode?: number;
}

const signs: Readonly<Record<State, IconName | undefined>> = { running: undefined, succeeded: "check", failed: "close", stopped: "stop", timeout: "stop" };

export const running: Outcome = { state: "running", words: "Running" };
export const stopped: Outcome = { state: "stopped", words: "Stopped" };
export const failure = (why: string): Outcome => ({ state: "failed", words: `Failed: ${why}` });

export function exited(code: number): Outcome {
  return code === 0 ? { state: "succeeded", words: "Succeeded with exit code 0" } : { state: "failed", words: `Failed with exit code ${code}`, exitCode: code };
}

/** The outcome for an execution's status and exit code. */
export function outcomeOf(status: string, exitCode: number | null, error?: string): Outcome {
  if (status === "running") return running;
  if (status === "timeout") return { state: "timeout", words: "Ended because its time was up" };
  if (status === "stopped") return stopped;
  if (status !== "completed" || exitCode === null) return failure(error ?? "it did not run to its end");
  const outcome = exited(exitCode);
  return error ? { ...outcome, words: `${outcome.words}: ${error}` } : outcome;
}

/** The label that is visible even while the entry is closed. */
export function mark({ state, exitCode }: Outcome): HTMLElement {
  const sign = signs[state];
  const shown = sign ? icon(sign) : h("span", { class: "dot", "aria-hidden": "true" });
  return h("span", `pill ${state} run-mark`, shown, state, exitCode === undefined ? null : h("span", "number", `exit ${exitCode}`));
}
