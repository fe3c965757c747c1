/** Ctrl and Alt of the page: held for the next key that is typed. */

export type Modifier = "ctrl" | "alt";
export type Held = Readonly<Record<Modifier, boolean>>;

const none: Held = { ctrl: false, alt: false };

export class Modifiers {
  readonly #listeners: (() => void)[] = [];
  #held = none;

  get held(): Held {
    return this.#held;
  }

  /** Calls back now and with every change. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
    listener();
  }

  toggle(modifier: Modifier): void {
    this.#become({ ...this.#held, [modifier]: !this.#held[modifier] });
  }

  /** What is held, for the key that comes now; the next one is free of it. */
  take(): Held {
    const held = this.#held;
    if (held !== none) this.#become(none);
    return held;
  }

  /** What is typed with what is held. Pasted text and answers of the terminal are more than one key and stay as they are. */
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

/** The control character of a key: Ctrl clears the upper bits of what stands between @ and _ (and of the small letters). */
function control(character: string): string {
  if (character === " ") return "\0";
  if (character === "?") return "\x7f";
  return /^[@-_a-z]$/.test(character) ? String.fromCharCode(character.charCodeAt(0) & 0x1f) : character;
}
