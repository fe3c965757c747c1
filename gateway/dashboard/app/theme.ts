/** Light, dark, or what the system prefers. */

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** As in theme-boot.ts, which can import nothing. */
const storageKey = "sandgate.theme";

export function chosenTheme(): Theme {
  return themes.find((theme) => theme === document.documentElement.dataset.theme) ?? "auto";
}

/** Applies a theme now and, where the browser keeps things, from now on. */
export function chooseTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // Then it holds until the page is loaded again.
  }
}
