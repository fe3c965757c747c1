/** What the reference can do with scripts: copy examples, choose the colours, open its menu on narrow screens. */
import { copyButton } from "./components/button.ts";
import { createDrawer, themeChoice } from "./components/shell.ts";

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

/** Marks the call that is being read, and keeps it in view in the menu. */
const links = new Map([...document.querySelectorAll<HTMLAnchorElement>(".docs-nav a")].map((link) => [link.hash.slice(1), link]));
const seen = new IntersectionObserver(
  (entries) => {
    const entry = entries.find(({ isIntersecting }) => isIntersecting);
    const link = entry && links.get(entry.target.id);
    if (!link) return;
    for (const other of links.values()) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "location");
    link.scrollIntoView({ block: "nearest" });
  },
  { rootMargin: "0px 0px -75% 0px" },
);
for (const call of document.querySelectorAll(".call, .group-head h2, h1")) seen.observe(call);
