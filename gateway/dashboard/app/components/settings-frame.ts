/** The heading and navigation that the two settings pages share. */
import { type Child, h } from "../dom.ts";
import { pageHeader } from "./bits.ts";

const pages = [
  ["API keys", "/settings/keys"],
  ["Account", "/settings/account"],
] as const;

export function settingsFrame(current: (typeof pages)[number][1], ...content: Child[]): HTMLElement {
  const links = pages.map(([label, href]) => h("a", { href, class: "sub-link", "aria-current": href === current ? "page" : undefined }, label));
  const header = pageHeader("Settings", null);
  return h("div", { class: "page" }, header, h("nav", { class: "sub-nav", "aria-label": "Settings" }, ...links), ...content);
}
