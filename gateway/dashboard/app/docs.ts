/** The script of the API reference: copy buttons, theme choice, and the menu on narrow screens. */
import { copyButton } from "./components/button.ts";
import { createDrawer, themeChoice } from "./components/shell.ts";

/** Replaces the default address with the one that this page was loaded from. */
const address = document.querySelector('[data-copy="Environment for the examples"] code');
if (address?.textContent) address.textContent = address.textContent.replace(/^(export SANDGATE_URL=).*$/m, `$1${location.origin}`);

for (const holder of document.querySelectorAll<HTMLElement>(".snippet")) {
  const code = holder.querySelector("code");
  if (code) holder.append(copyButton(() => code.textContent ?? "", `Copy ${holder.dataset.copy}`));
}

const part = (selector: string): HTMLElement | null => document.querySelector<HTMLElement>(selector);
const [sidebar, main, scrim, topBar] = [part(".sidebar"), part("main"), part(".scrim"), part(".top-bar")];
if (sidebar && main && scrim && topBar) {
  const drawer = createDrawer(sidebar, main, scrim);
  topBar.prepend(drawer.opener);
  sidebar.querySelector(".sidebar-end")?.append(themeChoice());
  sidebar.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a")) drawer.close();
  });
}

/** Marks the operation that is being read, and keeps it in view in the menu. */
const links = new Map([...document.querySelectorAll<HTMLAnchorElement>(".docs-nav a")].map((link) => [link.hash.slice(1), link]));
const places = [...document.querySelectorAll(".call, .group-head h2, h1")].filter(({ id }) => links.has(id));
const nearTop = 0.25;
const mark = (): void => {
  const at = places.findLast((place) => place.getBoundingClientRect().top < innerHeight * nearTop);
  const link = at && links.get(at.id);
  if (!link || link.hasAttribute("aria-current")) return;
  for (const other of links.values()) other.removeAttribute("aria-current");
  link.setAttribute("aria-current", "location");
  link.scrollIntoView({ block: "nearest" });
};
document.addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
mark();
