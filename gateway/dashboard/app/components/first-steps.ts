/** The first steps for a new account, shown until they are done. */
import type { AccountUsage } from "../../../../shared/schemas/accounts.ts";
import { fill, h } from "../dom.ts";
import { snippet } from "./bits.ts";
import { button, linkButton } from "./button.ts";
import { openCreateKey } from "./create-key.ts";
import { icon } from "./icons.ts";

/** A panel for accounts that have no key or have had no sandbox recently; hidden for all others. */
export function firstSteps(changed: () => void): { readonly element: HTMLElement; show(usage: AccountUsage): void } {
  const element = h("section", { class: "steps card", "aria-label": "First steps", hidden: true });
  let shown = "";
  const show = (usage: AccountUsage): void => {
    const hasKey = usage.keys.some(({ dashboard }) => !dashboard);
    const hasSandbox = usage.sandboxes.total > 0 || usage.history.some(({ sandboxes }) => sandboxes > 0);
    element.hidden = hasKey && hasSandbox;
    const state = `${hasKey} ${hasSandbox}`;
    // Redrawn only when a step is done, so that a selection in the snippet survives.
    if (state !== shown && !element.hidden) fill(element, ...panel(hasKey, hasSandbox, changed));
    shown = state;
  };
  return { element, show };
}

function panel(hasKey: boolean, hasSandbox: boolean, changed: () => void): HTMLElement[] {
  const create = button({ label: "Create key", icon: "plus", kind: hasKey ? "secondary" : "primary", onClick: () => openCreateKey(changed) });
  const example = [
    `curl -sS ${location.origin}/v1/sandboxes/create \\`,
    '  -H "x-api-key: $SANDGATE_API_KEY" -H "content-type: application/json" \\',
    `  -d '{"image":"default","name":"first"}'`,
  ].join("\n");
  const head = h("div", "steps-head", h("h2", {}, "First steps"), h("p", {}, "A key, a sandbox, a command: two minutes."));
  return [
    head,
    step(1, "Create an API key", "Your programs send it with every request. It is shown once.", hasKey, hasKey ? null : create),
    step(
      2,
      "Make a sandbox",
      "Set SANDGATE_API_KEY to your key and run this, or make one on these pages.",
      hasSandbox,
      snippet(example, "command"),
      linkButton("New sandbox", "/sandboxes?new"),
    ),
    step(3, "Run a command in it", "Open the sandbox and type a command: the output appears as it is made.", false),
  ];
}

function step(number: number, title: string, words: string, done: boolean, ...content: (HTMLElement | null)[]): HTMLElement {
  const badge = h("span", { class: `step-number${done ? " done" : ""}`, "aria-hidden": "true" }, done ? icon("check") : number);
  const heading = h("h3", {}, title, done ? h("span", "visually-hidden", " (done)") : null);
  const body = done ? [heading] : [heading, h("p", {}, words), ...content.filter((part) => part !== null)];
  return h("div", `step${done ? " done" : ""}`, badge, h("div", "step-body", ...body));
}
