/** One command that was started in this page: its output, its state, a way to end it. */
import { messageOf, pill, requestIdOf } from "../../components/bits.ts";
import { button, copyButton } from "../../components/button.ts";
import { icon } from "../../components/icons.ts";
import { type Child, fill, h } from "../../dom.ts";
import { duration } from "../../format.ts";
import { Output } from "./output.ts";
import { type Chunk, type Execution, runStream } from "./stream.ts";

const tickMs = 100;

export interface Run {
  readonly element: HTMLElement;
  /** Settles when the command has ended, in whatever way; never rejects. */
  readonly done: Promise<void>;
}

/** Starts the command at once. It ends with the page. */
export function startRun(id: string, execution: Execution, pageSignal: AbortSignal): Run {
  const stop = new AbortController();
  const output = new Output();
  const startedAt = performance.now();
  const elapsed = h("span", { class: "run-time number" });
  const status = h("span", { class: "run-status", role: "status", "aria-live": "polite" });
  const stopButton = button({ label: "Stop", icon: "stop", size: "small", onClick: () => stop.abort() });
  const copyCommand = copyButton(() => execution.command, "Copy command");
  const head = h("summary", { class: "run-head" }, icon("chevron"), h("code", { class: "run-command" }, execution.command), elapsed);
  const foot = h("div", { class: "run-foot" }, status, h("div", { class: "actions" }, copyCommand, stopButton));
  const element = h("details", { class: "run card", open: true }, head, output.element, foot);
  const tick = (): string => (elapsed.textContent = duration(performance.now() - startedAt));
  const timer = setInterval(tick, tickMs);
  fill(status, pill("running"));

  let last: Chunk | undefined;
  const take = (chunk: Chunk): Promise<void> | undefined => {
    if (chunk.stdout) return output.add("stdout", chunk.stdout);
    if (chunk.stderr) return output.add("stderr", chunk.stderr);
    if (chunk.exit_code !== undefined || chunk.error !== undefined) last = chunk;
    return undefined;
  };
  const work = async (): Promise<void> => {
    try {
      await runStream(id, execution, AbortSignal.any([stop.signal, pageSignal]), take);
      fill(status, ...outcome(last));
    } catch (error) {
      fill(status, ...(stop.signal.aborted ? [pill("stopped")] : [pill("failed"), h("span", {}, messageOf(error)), requestIdOf(error)]));
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

function outcome(last: Chunk | undefined): Child[] {
  if (last?.exit_code === 0) return [pill("succeeded"), h("span", {}, "exit code 0")];
  if (last?.exit_code !== undefined) return [pill("failed"), h("span", {}, `exit code ${last.exit_code}`)];
  return [pill("failed"), h("span", {}, last?.error ?? "The stream ended early.")];
}
