/** Keys that the keyboards of telephones do not have. */
import { button } from "../components/button.ts";
import { h } from "../dom.ts";
import type { Desk } from "./desk.ts";
import type { Modifier } from "./modifiers.ts";

const plain = { Esc: "\x1b", Tab: "\t", "Ctrl-C": "\x03", "Ctrl-D": "\x04" } as const;
/** The last letter of each arrow's sequence (ECMA-48 and xterm's control sequences). */
const arrows = { "←": ["D", "Left"], "↓": ["B", "Down"], "↑": ["A", "Up"], "→": ["C", "Right"] } as const;

/** They send what they stand for, or are held down for the next key, and leave the focus, and so the keyboard, where it is. */
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

/** As the program has asked for them: editors and pagers ask for others than shells. */
function arrowOf(desk: Desk, letter: string): string {
  const screen = desk.seen?.screen;
  const { alt, ctrl } = desk.modifiers.take();
  const code = 1 + (alt ? 2 : 0) + (ctrl ? 4 : 0);
  if (code > 1) return `\x1b[1;${code}${letter}`;
  return screen?.terminal.modes.applicationCursorKeysMode ? `\x1bO${letter}` : `\x1b[${letter}`;
}

/** Pressed, it holds for the next key, whichever keyboard that is on; pressed again, it does not. */
function hold(desk: Desk, modifier: Modifier, label: string): HTMLButtonElement {
  const element = key(label, () => {
    desk.modifiers.toggle(modifier);
    desk.focus();
  });
  desk.modifiers.onChange(() => element.setAttribute("aria-pressed", String(desk.modifiers.held[modifier])));
  return element;
}
