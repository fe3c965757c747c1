/** Keys that phone keyboards lack. */
import { button } from "../components/button.ts";
import { h } from "../dom.ts";
import type { Desk } from "./desk.ts";
import type { Modifier } from "./modifiers.ts";

const plain = { Esc: "\x1b", Tab: "\t", "Ctrl-C": "\x03", "Ctrl-D": "\x04" } as const;
/** The final letter of each arrow key's sequence (ECMA-48 and xterm's control sequences). */
const arrows = { "←": ["D", "Left"], "↓": ["B", "Down"], "↑": ["A", "Up"], "→": ["C", "Right"] } as const;

/** Keys that send their sequence, or apply to the next key. They do not take the focus, so the on-screen keyboard stays open. */
export function touchKeys(desk: Desk): HTMLElement {
  const send = (label: keyof typeof plain): HTMLElement => key(label, () => press(desk, plain[label]));
  const arrow = (label: keyof typeof arrows): HTMLElement => key(label, () => press(desk, arrowOf(desk, arrows[label][0])), arrows[label][1]);
  const rows = [send("Esc"), send("Tab"), hold(desk, "ctrl", "Ctrl"), hold(desk, "alt", "Alt"), send("Ctrl-C")];
  const more = [arrow("←"), arrow("↓"), arrow("↑"), arrow("→"), send("Ctrl-D")];
  return h("div", { class: "touch-keys", role: "group", "aria-label": "Keys" }, ...rows, ...more);
}

function press(desk: Desk, data: string): void {
  desk.seen?.screen.terminal.input(data);
  desk.focus();
}

function key(label: string, onClick: () => void, name = label): HTMLButtonElement {
  const element = button({ label, size: "small", onClick });
  if (name !== label) element.setAttribute("aria-label", name);
  element.addEventListener("pointerdown", (event) => event.preventDefault());
  return element;
}

/** The arrow key's sequence in the mode that the program has set: editors and pagers use another than shells. */
function arrowOf(desk: Desk, letter: string): string {
  const screen = desk.seen?.screen;
  const { alt, ctrl } = desk.modifiers.take();
  const code = 1 + (alt ? 2 : 0) + (ctrl ? 4 : 0);
  if (code > 1) return `\x1b[1;${code}${letter}`;
  return screen?.terminal.modes.applicationCursorKeysMode ? `\x1bO${letter}` : `\x1b[${letter}`;
}

/** A modifier that applies to the next key of any keyboard; pressing it again releases it. */
function hold(desk: Desk, modifier: Modifier, label: string): HTMLButtonElement {
  const element = key(label, () => {
    desk.modifiers.toggle(modifier);
    desk.focus();
  });
  desk.modifiers.onChange(() => element.setAttribute("aria-pressed", String(desk.modifiers.held[modifier])));
  return element;
}
