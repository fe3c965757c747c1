/** The executions of a sandbox, started from this page or elsewhere. */
import type { LogEntry, Logs } from "../../../../../shared/schemas/usage.ts";
import { call } from "../../api.ts";
import { emptyState, errorNotice, pill, skeleton, timeAgo } from "../../components/bits.ts";
import { button, whileBusy } from "../../components/button.ts";
import { icon } from "../../components/icons.ts";
import type { Panel } from "../../components/tabs.ts";
import { fill, h } from "../../dom.ts";
import { count, duration } from "../../format.ts";
import { toastError } from "../../toast.ts";

const dayMs = 86_400_000;
const entriesMax = 100;

/** Call `changed` after a new execution. */
export function logsPanel(id: string, signal: AbortSignal): Panel & { readonly changed: () => void } {
  const place = h("div", {}, skeleton());
  const total = h("span", { class: "quiet", role: "status" });
  const list = h("div", "log-list");
  let visible = false;
  const page = async (cursor?: string): Promise<void> => {
    const from = new Date(Date.now() - dayMs).toISOString();
    const where = cursor === undefined ? `from=${encodeURIComponent(from)}` : `cursor=${encodeURIComponent(cursor)}`;
    const answer = await call<Logs>("GET", `/v1/sandboxes/logs?sandbox_id=${encodeURIComponent(id)}&limit=${entriesMax}&${where}`, { signal });
    if (cursor === undefined) fill(list);
    const rows = answer.logs.map(entryRow);
    list.append(...rows);
    const shown = list.childElementCount;
    total.textContent = `${count(answer.total)} in the last 24 hours${answer.total > shown ? `, the newest ${count(shown)} shown` : ""}`;
    const { next_cursor } = answer;
    fill(place, list, next_cursor === undefined ? null : older(() => page(next_cursor)));
    // The pressed button is gone, so keyboard users continue at the first new row.
    if (cursor !== undefined) rows[0]?.querySelector("summary")?.focus();
  };
  const older = (load: () => Promise<void>): HTMLElement =>
    button({ label: "Show older", size: "small", onClick: (element) => void whileBusy(element, () => load().catch(toastError)) });
  const load = async (): Promise<void> => {
    try {
      await page();
      if (!list.childElementCount)
        fill(place, emptyState("file", "Nothing has run yet", "Commands appear here, whether they came from these pages or from your programs."));
    } catch (error) {
      if (!signal.aborted) fill(place, errorNotice(error, load));
    }
  };
  const refresh = button({ label: "Refresh", icon: "refresh", size: "small", onClick: (element) => void whileBusy(element, load) });
  const head = h("div", "section-head", h("div", {}, h("h2", {}, "Logs"), total), refresh);
  return {
    element: h("div", "stack", head, place),
    shown: () => {
      visible = true;
      void load();
    },
    hidden: () => {
      visible = false;
    },
    changed: () => {
      if (visible) void load();
    },
  };
}

function entryRow(entry: LogEntry): HTMLElement {
  const { command, command_bytes, status, exit_code, execution_time_ms, timestamp, source, working_dir, request_id } = entry;
  const failed = status === "completed" && exit_code !== 0;
  const head = h(
    "summary",
    "log-head",
    icon("chevron"),
    h("code", "log-command", command),
    pill(failed ? "failed" : status),
    h("span", "log-exit number wide-only", exit_code === null || status === "running" ? "" : `exit ${exit_code}`),
    h("span", "log-time number wide-only", execution_time_ms === null ? "" : duration(execution_time_ms)),
    timeAgo(timestamp),
  );
  const facts = [source, working_dir, `exit code ${exit_code ?? "none"}`, request_id].filter(Boolean).join(" · ");
  return h(
    "details",
    "log-entry",
    head,
    h(
      "div",
      "log-body",
      h("pre", { class: "log-text", tabindex: 0, "aria-label": "Command" }, command),
      command_bytes === undefined ? null : h("p", "quiet", `The beginning of a command of ${count(command_bytes)} bytes.`),
      ...outputs(entry),
      h("p", "quiet", facts),
    ),
  );
}

function outputs({ stdout, stderr, stdout_truncated, stderr_truncated }: LogEntry): HTMLElement[] {
  const streams = [
    ["stdout", stdout, stdout_truncated],
    ["stderr", stderr, stderr_truncated],
  ] as const;
  const blocks = streams
    .filter(([, text]) => text)
    .map(([name, text, cut]) =>
      h("div", {}, h("h3", {}, name, cut ? " (its beginning)" : ""), h("pre", { class: `log-text ${name}`, tabindex: 0, "aria-label": name }, text ?? "")),
    );
  return blocks.length ? blocks : [h("p", "quiet", "It printed nothing.")];
}
