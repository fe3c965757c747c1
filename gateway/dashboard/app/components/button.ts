/** Buttons, and the state in which they wait for the server. */
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

/** A button that shows only an icon; its name is for assistive technology and the tooltip. */
export function iconButton(label: string, name: IconName, onClick: (button: HTMLButtonElement) => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: "icon-button", "aria-label": label, title: label }, icon(name));
  element.addEventListener("click", () => onClick(element));
  return element;
}

/** A link that looks like a button. */
export function linkButton(label: string, href: string, kind: "primary" | "secondary" = "secondary"): HTMLAnchorElement {
  return h("a", { class: `button ${kind}`, href }, h("span", {}, label));
}

/** Keeps a button from being pressed twice while `work` runs. It stays focusable, so the keyboard does not lose its place. */
export async function whileBusy<T>(element: HTMLButtonElement, work: () => Promise<T>): Promise<T | undefined> {
  if (element.getAttribute("aria-disabled") === "true") return undefined;
  element.setAttribute("aria-disabled", "true");
  element.classList.add("busy");
  try {
    return await work();
  } finally {
    element.removeAttribute("aria-disabled");
    element.classList.remove("busy");
  }
}

/** A button that copies `text` and says so. */
export function copyButton(text: () => string, label = "Copy"): HTMLButtonElement {
  const said = h("span", { class: "visually-hidden", role: "status" });
  const element = iconButton(label, "copy", async () => {
    const worked = await copy(text());
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

/** The clipboard API exists only on secure origins; an installation on a plain-HTTP LAN address has the old command. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const holder = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    holder.value = text;
    // Inside an open dialog nothing outside of it can be selected.
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
