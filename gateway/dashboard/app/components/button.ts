/** Buttons, and their busy state. */
import { type Child, fill, h } from "../dom.ts";
import { type IconName, icon } from "./icons.ts";

export interface ButtonOptions {
  readonly label: string;
  readonly icon?: IconName;
  readonly kind?: "primary" | "secondary" | "danger" | "danger-quiet" | "ghost";
  readonly size?: "small";
  readonly type?: "button" | "submit";
  readonly onClick?: (button: HTMLButtonElement) => void;
}

export function button({ label, icon: name, kind = "secondary", size, type = "button", onClick }: ButtonOptions): HTMLButtonElement {
  const element = h("button", { type, class: `button ${kind}${size ? ` ${size}` : ""}` }, name ? icon(name) : null, h("span", {}, label));
  if (onClick) element.addEventListener("click", () => onClick(element));
  return element;
}

/** An icon-only button. Its label is for assistive technology and the tooltip. */
export function iconButton(label: string, name: IconName, onClick: (button: HTMLButtonElement) => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: "icon-button", "aria-label": label, title: label }, icon(name));
  element.addEventListener("click", () => onClick(element));
  return element;
}

/** A link that looks like a button. */
export function linkButton(label: string, href: string, kind: "primary" | "secondary" = "secondary", name?: IconName): HTMLAnchorElement {
  return h("a", { class: `button ${kind}`, href }, name ? icon(name) : null, h("span", {}, label));
}

export const isBusy = (element: HTMLButtonElement): boolean => element.getAttribute("aria-disabled") === "true";

/**
 * Prevents a second press while `work` runs. The button stays focusable, so that keyboard users keep their place. With
 * `words`, the button shows them and the elapsed time.
 */
export async function whileBusy<T>(element: HTMLButtonElement, work: () => Promise<T>, words = ""): Promise<T | undefined> {
  if (isBusy(element)) return undefined;
  element.setAttribute("aria-disabled", "true");
  element.classList.add("busy");
  const tellNoMore = words ? tell(element, words) : undefined;
  try {
    return await work();
  } finally {
    tellNoMore?.();
    element.removeAttribute("aria-disabled");
    element.classList.remove("busy");
  }
}

/** Shows words and elapsed time in the button. Returns a function that restores the label. */
function tell(element: HTMLButtonElement, words: string): () => void {
  const label = [...element.childNodes];
  const startedAt = performance.now();
  const elapsed = h("span", "elapsed");
  const clock = setInterval(() => {
    elapsed.textContent = `${Math.floor((performance.now() - startedAt) / 1_000)} s`;
  }, 1_000);
  element.classList.add("telling");
  fill(element, h("span", {}, words), elapsed);
  return () => {
    clearInterval(clock);
    element.classList.remove("telling");
    fill(element, ...label);
  };
}

/** A button that copies `text`, announces it, and calls `copied` on success. */
export function copyButton(text: () => string, label = "Copy", copied: () => void = () => {}): HTMLButtonElement {
  const said = h("span", { class: "visually-hidden", role: "status" });
  const element = iconButton(label, "copy", async () => {
    const worked = await copy(text());
    if (worked) copied();
    show(worked ? icon("check") : icon("warning"), worked ? "Copied" : "Copying failed: select the text instead");
    setTimeout(() => show(icon("copy"), ""), 1_500);
  });
  const show = (picture: Child, words: string): void => {
    fill(element, picture, said);
    said.textContent = words;
    element.classList.toggle("done", words === "Copied");
  };
  element.append(said);
  return element;
}

/** The clipboard API exists only on secure origins. An installation on a plain-HTTP LAN address falls back to `execCommand`. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const holder = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    holder.value = text;
    // While a modal dialog is open, nothing outside it can be selected.
    const parent = document.querySelector("dialog[open]") ?? document.body;
    const focused = document.activeElement;
    parent.append(holder);
    holder.select();
    const worked = document.execCommand("copy");
    holder.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return worked;
  }
}
