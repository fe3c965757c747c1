/** The frame around the pages: navigation, account and theme. */
import { type Child, fill, h } from "../dom.ts";
import { navigate } from "../router.ts";
import { account, logOut } from "../session.ts";
import { toastError } from "../toast.ts";
import { iconButton, whileBusy } from "./button.ts";
import { choice } from "./field.ts";
import { type IconName, icon, mark } from "./icons.ts";

export interface Shell {
  readonly element: HTMLElement;
  show(page: HTMLElement, path: string): void;
}

const places: readonly (readonly [label: string, href: string, icon: IconName])[] = [
  ["Overview", "/", "overview"],
  ["Sandboxes", "/sandboxes", "sandboxes"],
  ["Snapshots", "/snapshots", "snapshots"],
  ["Settings", "/settings/keys", "settings"],
];

/** Creates the frame for the logged-in account. */
export function createShell(): Shell {
  const links = places.map(([label, href, name]) => h("a", { class: "nav-link", href }, icon(name), h("span", {}, label)));
  const sidebar = h(
    "aside",
    { class: "sidebar", id: "sidebar" },
    wordmark(),
    h("nav", { class: "nav", "aria-label": "Main" }, ...links),
    h("div", "sidebar-end", referenceLink(), themeChoice(), accountBox()),
  );
  const main = h("main", { id: "content", class: "content", tabindex: -1 });
  const scrim = h("div", { class: "scrim", hidden: true });
  const drawer = createDrawer(sidebar, main, scrim);
  const topBar = h("header", "top-bar", drawer.opener, wordmark());
  const skip = h("a", { class: "skip-link", href: "#content" }, "Skip to content");
  const element = h("div", "shell", skip, topBar, sidebar, scrim, main);
  const show = (page: HTMLElement, path: string): void => {
    drawer.close();
    fill(main, page);
    for (const link of links) {
      if (isWithin(path, link.pathname)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  };
  return { element, show };
}

/** The reference is a separate document, so the browser must load it. */
function referenceLink(): HTMLElement {
  return h("a", { class: "nav-link", href: "/docs", target: "_blank", rel: "noopener" }, icon("docs"), h("span", {}, "API reference"), icon("out"));
}

/** The theme choice, for the frame and for pages without one. */
export function themeChoice(): HTMLElement {
  const options: (readonly [Theme, Child, string])[] = [
    ["auto", icon("auto"), "As the system"],
    ["light", icon("light"), "Light"],
    ["dark", icon("dark"), "Dark"],
  ];
  const { element } = choice("Theme", options, chosenTheme(), chooseTheme);
  element.classList.add("theme-choice");
  return element;
}

export function wordmark(): HTMLElement {
  return h("a", { class: "wordmark", href: "/" }, mark(), h("span", {}, "Sandgate"));
}

function isWithin(path: string, place: string): boolean {
  if (place === "/") return path === "/";
  const top = `/${place.split("/")[1]}`;
  return path === top || path.startsWith(`${top}/`);
}

function accountBox(): HTMLElement {
  const { email, name, tier } = account();
  const who = email ?? name;
  const logOutButton = iconButton("Log out", "logout", (element) =>
    whileBusy(element, async () => {
      try {
        await logOut();
        navigate("/login");
      } catch (error) {
        toastError(error);
      }
    }),
  );
  const words = h("div", "account-words", h("span", { class: "account-name", title: who }, who), h("span", "badge", tier));
  return h("div", "account", words, logOutButton);
}

/** On narrow screens the sidebar opens over the page, which is inert meanwhile. */
export function createDrawer(sidebar: HTMLElement, main: HTMLElement, scrim: HTMLElement): { readonly opener: HTMLElement; close(): void } {
  const set = (open: boolean): void => {
    sidebar.classList.toggle("open", open);
    scrim.hidden = !open;
    main.inert = open;
    opener.setAttribute("aria-expanded", String(open));
  };
  const close = (): void => set(false);
  const opener = iconButton("Menu", "menu", () => {
    set(!sidebar.classList.contains("open"));
    if (sidebar.classList.contains("open")) sidebar.querySelector("a")?.focus();
  });
  opener.setAttribute("aria-controls", sidebar.id);
  opener.setAttribute("aria-expanded", "false");
  scrim.addEventListener("click", close);
  const closeOnEscape = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !sidebar.classList.contains("open")) return;
    close();
    opener.focus();
  };
  for (const element of [sidebar, opener]) element.addEventListener("keydown", closeOnEscape);
  return { opener, close };
}

const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];

/** The same key as in theme-boot.ts, which cannot import modules. */
const storageKey = "sandgate.theme";

function chosenTheme(): Theme {
  return themes.find((theme) => theme === document.documentElement.dataset.theme) ?? "auto";
}

/** Applies a theme, and remembers it if the browser allows storage. */
function chooseTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // Without storage, the choice lasts until the page is reloaded.
  }
}
