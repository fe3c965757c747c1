/** The terminal's light and dark colours, matching the pages. */
import type { ITheme } from "@xterm/xterm";

const light: ITheme = {
  background: "#fbfaf8",
  foreground: "#1b1917",
  cursor: "#a9560c",
  cursorAccent: "#fbfaf8",
  selectionBackground: "#f6d9ae",
  selectionInactiveBackground: "#ece7df",
  scrollbarSliderBackground: "#1b191726",
  scrollbarSliderHoverBackground: "#1b191740",
  scrollbarSliderActiveBackground: "#1b191759",
  black: "#1b1917",
  red: "#b3261e",
  green: "#157347",
  yellow: "#8a5a00",
  blue: "#2459b8",
  magenta: "#8a3ca8",
  cyan: "#0b6e7c",
  white: "#726c64",
  brightBlack: "#57524c",
  brightRed: "#cc3a30",
  brightGreen: "#1c8757",
  brightYellow: "#a56c00",
  brightBlue: "#3a70d6",
  brightMagenta: "#a252c2",
  brightCyan: "#138494",
  brightWhite: "#918b82",
};

const dark: ITheme = {
  background: "#0b0a0a",
  foreground: "#f2f0ed",
  cursor: "#efa544",
  cursorAccent: "#0b0a0a",
  selectionBackground: "#6b4715",
  selectionInactiveBackground: "#33302c",
  scrollbarSliderBackground: "#f2f0ed26",
  scrollbarSliderHoverBackground: "#f2f0ed40",
  scrollbarSliderActiveBackground: "#f2f0ed59",
  black: "#3b3733",
  red: "#f58a80",
  green: "#57c78a",
  yellow: "#e8b84a",
  blue: "#82aef5",
  magenta: "#cf9be8",
  cyan: "#5fc9d6",
  white: "#d8d4ce",
  brightBlack: "#918b82",
  brightRed: "#ffa69e",
  brightGreen: "#7edca8",
  brightYellow: "#f5cf74",
  brightBlue: "#a6c7fb",
  brightMagenta: "#dfb8f2",
  brightCyan: "#8adde7",
  brightWhite: "#ffffff",
};

const system = matchMedia("(prefers-color-scheme: dark)");

/** Calls back with the colours, now and whenever the theme changes. */
export function followColours(signal: AbortSignal, use: (theme: ITheme) => void): void {
  const apply = (): void => {
    const { theme } = document.documentElement.dataset;
    use(theme === "dark" || (theme !== "light" && system.matches) ? dark : light);
  };
  const chosen = new MutationObserver(apply);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  system.addEventListener("change", apply, { signal });
  signal.addEventListener("abort", () => chosen.disconnect());
  apply();
}
