/** The theme: light, dark, or the system preference. */

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** The same key as in theme-boot.ts, which cannot import modules. */
const storageKey = "sandgate.theme";

export function chosenTheme(): Theme {
  return themes.find((theme) => theme === document.documentElement.dataset.theme) ?? "auto";
}

/** Applies a theme, and remembers it if the browser allows storage. */
export function chooseTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // Without storage, the choice lasts until the page is reloaded.
  }
}
