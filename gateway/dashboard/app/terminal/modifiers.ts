/** The on-screen Ctrl and Alt keys, which apply to the next typed key. */

export type Modifier = "ctrl" | "alt";
export type Held = Readonly<Record<Modifier, boolean>>;

const none: Held = { ctrl: false, alt: false };

export class Modifiers {
  readonly #listeners: (() => void)[] = [];
  #held = none;

  get held(): Held {
    return this.#held;
  }

  /** Calls back now and after every change. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
    listener();
  }

  toggle(modifier: Modifier): void {
    this.#become({ ...this.#held, [modifier]: !this.#held[modifier] });
  }

  /** Returns and releases the held modifiers. */
  take(): Held {
    const held = this.#held;
    if (held !== none) this.#become(none);
    return held;
  }

  /** Applies the held modifiers to one typed key. Longer input, such as pasted text and terminal replies, is left unchanged. */
  apply(data: string): string {
    if (this.#held === none || [...data].length !== 1) return data;
    const { ctrl, alt } = this.take();
    return (alt ? "\x1b" : "") + (ctrl ? control(data) : data);
  }

  #become(held: Held): void {
    this.#held = held.ctrl || held.alt ? held : none;
    for (const listener of this.#listeners) listener();
  }
}

/** The control character of a key: Ctrl clears the upper bits of the characters from @ to _, and of lowercase letters. */
function control(character: string): string {
  if (character === " ") return "\0";
  if (character === "?") return "\x7f";
  return /^[@-_a-z]$/.test(character) ? String.fromCharCode(character.charCodeAt(0) & 0x1f) : character;
}
