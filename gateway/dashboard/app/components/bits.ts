/** Small components that many pages share. */
import { APIError } from "../api.ts";
import { type Child, fill, h, svg } from "../dom.ts";
import { fullTime, relativeTime } from "../format.ts";
import { button, copyButton, whileBusy } from "./button.ts";
import { type IconName, icon } from "./icons.ts";

const refreshMs = 15_000;

/** A status as a coloured label. */
export function pill(status: string): HTMLElement {
  return h("span", `pill ${status.replaceAll(/[^a-z-]/g, "")}`, h("span", { class: "dot", "aria-hidden": "true" }), status);
}

/** A relative time, with the exact time in the tooltip. */
export function timeAgo(iso: string): HTMLElement {
  return h("time", { datetime: iso, title: fullTime(iso), "data-ago": true }, relativeTime(iso));
}

/** Keeps every `timeAgo` on the page up to date. */
export function keepTimesTrue(): void {
  setInterval(() => {
    if (document.hidden) return;
    for (const element of document.querySelectorAll<HTMLTimeElement>("time[data-ago]")) element.textContent = relativeTime(element.dateTime);
  }, refreshMs);
}

/** The used share of an allowance: a bar that changes to warning colours when nearly full. */
export function meter(label: string, used: number, limit: number): HTMLElement {
  const share = limit > 0 ? Math.min(1, Math.max(0, used / limit)) : 0;
  const level = share >= 1 ? "full" : share >= 0.8 ? "high" : "normal";
  const attributes = { role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": limit, "aria-valuenow": Math.min(used, limit) };
  const bar = svg("rect", { class: `meter-bar ${level}`, width: `${share * 100}%`, height: "100%" });
  return h("span", { class: "meter", ...attributes }, svg("svg", { "aria-hidden": "true", width: "100%", height: "100%" }, bar));
}

/** Shown instead of an empty table. */
export function emptyState(name: IconName, title: string, words: string, ...actions: Child[]): HTMLElement {
  return h("div", "empty", h("div", "empty-icon", icon(name)), h("h2", {}, title), h("p", {}, words), ...actions);
}

/** Shows an error in place of what failed. */
export function errorNotice(error: unknown, retry?: () => unknown): HTMLElement {
  return h(
    "div",
    { class: "notice error", role: "alert" },
    icon("warning"),
    h("div", "notice-words", messageOf(error), requestIdOf(error)),
    retry ? button({ label: "Try again", size: "small", onClick: () => void retry() }) : null,
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The request id, by which the operator finds the error in the log. */
export function requestIdOf(error: unknown): HTMLElement | null {
  return error instanceof APIError && error.requestId ? h("code", "request-id", error.requestId) : null;
}

/** A page heading with its actions. */
export function pageHeader(title: string, words: Child, ...actions: Child[]): HTMLElement {
  const heading = h("h1", { tabindex: -1 }, title);
  return h(
    "header",
    "page-header",
    h("div", "page-title", heading, words ? h("p", "page-words", words) : null),
    actions.length ? h("div", "actions", ...actions) : null,
  );
}

/** Text with a copy button. */
export function snippet(text: string, label: string): HTMLElement {
  return h(
    "div",
    "snippet",
    h("pre", { tabindex: 0, "aria-label": label }, h("code", {}, text)),
    copyButton(() => text, `Copy ${label}`),
  );
}

/** Placeholder rows for a table that is loading. */
export function skeleton(rows = 4): HTMLElement {
  return h("div", { class: "skeleton", "aria-hidden": "true" }, ...Array.from({ length: rows }, () => h("span", {})));
}

const pages = [
  ["API keys", "/settings/keys"],
  ["Account", "/settings/account"],
] as const;

export function settingsFrame(current: (typeof pages)[number][1], ...content: Child[]): HTMLElement {
  const links = pages.map(([label, href]) => h("a", { href, class: "sub-link", "aria-current": href === current ? "page" : undefined }, label));
  const header = pageHeader("Settings", null);
  return h("div", "page", header, h("nav", { class: "sub-nav", "aria-label": "Settings" }, ...links), ...content);
}

/** A form that runs `submit`, one at a time, and shows its error in `trouble`. The button must be part of the content. */
export function formOf(
  className: string,
  content: readonly Child[],
  trouble: HTMLElement,
  send: HTMLButtonElement,
  submit: () => Promise<void>,
): HTMLFormElement {
  const form = h("form", { class: className, novalidate: true }, ...content);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fill(trouble);
    whileBusy(send, submit).catch((error: unknown) => fill(trouble, errorNotice(error)));
  });
  return form;
}

/** An id with a copy button. */
export function idOf(id: string, shown = id): HTMLElement {
  const copy = copyButton(() => id, "Copy id");
  return h("span", "id", h("code", { title: id === shown ? undefined : id }, shown), copy);
}

/** One number of a page, with what it means. */
export function figure(title: string, value: string, words = "", bar?: HTMLElement): HTMLElement {
  const shown = h("div", "figure-value", value, words ? h("span", "figure-words", words) : null);
  return h("div", "figure card", h("div", "figure-title", title), shown, bar ?? null);
}
