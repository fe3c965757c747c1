/** The outcome of a command as words, icon and colour, for commands of this page and of the log. */
import { type IconName, icon } from "../../components/icons.ts";
import { h } from "../../dom.ts";

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
  return h("span", { class: `pill ${state} run-mark` }, shown, state, exitCode === undefined ? null : h("span", { class: "number" }, `exit ${exitCode}`));
}
