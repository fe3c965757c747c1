/** The console, which runs commands and shows their output. */
import { button } from "../../components/button.ts";
import { field, focusProblem } from "../../components/field.ts";
import type { Panel } from "../../components/tabs.ts";
import { h, uniqueId } from "../../dom.ts";
import { earlierRuns } from "./earlier.ts";
import { type Execution, type Run, startRun } from "./run.ts";

/** The most runs on the page; older ones are removed, because each may hold megabytes. */
const runsMax = 10;

export function consolePanel(id: string, signal: AbortSignal, finished: () => void): Panel {
  const command = commandBox();
  const timeout = field({ label: "Timeout", unit: "s", attributes: { type: "number", min: 1, step: 1, inputmode: "numeric", placeholder: "none" } });
  const folder = field({ label: "Working directory", attributes: { class: "input mono", placeholder: "default" } });
  const run = button({ label: "Run", icon: "play", kind: "primary", type: "submit" });
  const runs = h("div", "runs");
  const shorten = (): void => {
    while (runs.children.length > runsMax) runs.lastElementChild?.remove();
  };
  let isFilled = false;
  /** Loads earlier runs once. Errors are ignored here; the logs tab shows them. */
  const fillOnce = async (): Promise<void> => {
    if (isFilled) return;
    isFilled = true;
    const earlier = await earlierRuns(id, runsMax, signal).catch(() => []);
    runs.append(...earlier.map(({ element }) => element));
    shorten();
    command.recall(earlier.map((one) => one.command).reverse());
  };
  let current: Run | undefined;
  const start = (): void => {
    if (!command.input.value.trim() || current) return command.input.focus();
    timeout.complain(/^[1-9]\d*$|^$/.test(timeout.value.trim()) ? "" : "A whole number from 1");
    folder.complain(/^\/|^$/.test(folder.value.trim()) ? "" : "Starts with “/”");
    if (focusProblem([timeout, folder])) return;
    const seconds = Number(timeout.value);
    const workingDir = folder.value.trim();
    const execution: Execution = { command: command.input.value, ...(seconds ? { timeout: seconds } : {}), ...(workingDir ? { working_dir: workingDir } : {}) };
    command.remember();
    run.disabled = true;
    current = startRun(id, execution, signal);
    runs.querySelector("details[open]")?.removeAttribute("open");
    runs.prepend(current.element);
    shorten();
    void current.done.finally(() => {
      current = undefined;
      run.disabled = false;
      finished();
    });
  };
  const options = h("div", "run-options", folder.element, timeout.element, run);
  const form = h("form", { class: "run-form card", novalidate: true }, command.element, options);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    start();
  });
  command.input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    start();
  });
  return { element: h("div", "stack", h("h2", "visually-hidden", "Console"), form, runs), shown: () => void fillOnce() };
}

interface CommandBox {
  readonly element: HTMLElement;
  readonly input: HTMLTextAreaElement;
  /** Adds the command to the history of the arrow keys, and clears the box. */
  remember(): void;
  /** Adds commands, oldest first, before those in the history. */
  recall(commands: readonly string[]): void;
}

/** An input that grows with its command. While it holds a single line, the arrow keys recall earlier commands. */
function commandBox(): CommandBox {
  const id = uniqueId("command");
  const attributes = {
    rows: 1,
    class: "command",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "Type a command, such as uname -a",
  };
  const input = h("textarea", { id, ...attributes, "aria-describedby": `${id}-hint` });
  const earlier: string[] = [];
  let at = 0;
  const fit = (): void => {
    input.rows = Math.min(10, input.value.split("\n").length);
  };
  const recall = (step: number): void => {
    at = Math.max(0, Math.min(earlier.length, at + step));
    input.value = earlier[at] ?? "";
    fit();
  };
  input.addEventListener("input", fit);
  input.addEventListener("keydown", (event) => {
    if (input.value.includes("\n") || !["ArrowUp", "ArrowDown"].includes(event.key) || !earlier.length) return;
    event.preventDefault();
    recall(event.key === "ArrowUp" ? -1 : 1);
  });
  const prompt = h("span", { class: "prompt", "aria-hidden": "true" }, "$");
  const label = h("label", { class: "visually-hidden", for: id }, "Command");
  const hint = h("p", { id: `${id}-hint`, class: "visually-hidden" }, "Enter runs it, Shift and Enter begins a new line.");
  return {
    element: h("div", "command-line", label, prompt, input, hint),
    input,
    recall: (commands) => {
      earlier.unshift(...commands.filter((one, index) => one !== commands[index + 1]));
      at = earlier.length;
    },
    remember: () => {
      if (earlier.at(-1) !== input.value) earlier.push(input.value);
      at = earlier.length;
      input.value = "";
      fit();
    },
  };
}
