/** The terminal that one sees: xterm.js with its colours, its clipboard, its keys and its size. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import type { TerminalSize } from "../../../../shared/client/session/session.ts";
import { h } from "../dom.ts";
import { followColours } from "./colours.ts";
import { followAfterLooking } from "./links.ts";
import type { Modifiers } from "./modifiers.ts";

/** Output that is with xterm.js at the same time; more is left with the server, and the program waits. */
const inWorkMax = 128 * 1024;
const scrollbackLines = 10_000;
const fontSizePx = 13;

export interface ScreenOptions {
  readonly label: string;
  readonly signal: AbortSignal;
  readonly modifiers: Modifiers;
  /** What somebody typed or pasted, or the terminal's answer to a program. */
  readonly onInput: (data: string) => void;
  readonly onBinary: (bytes: Uint8Array) => void;
  readonly onResize: (size: TerminalSize) => void;
  /** Somebody wants to go on with the keyboard outside of the terminal. */
  readonly onLeave: () => void;
}

export class Screen {
  readonly element: HTMLElement;
  readonly terminal: Terminal;
  readonly #fit = new FitAddon();
  readonly #options: ScreenOptions;
  #inWork = 0;
  #room: (() => void) | undefined;
  #isHeld = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
    const { label, signal } = options;
    this.element = h("div", { class: "screen", role: "group", "aria-label": label });
    this.terminal = new Terminal({
      allowProposedApi: false,
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      fontSize: fontSizePx,
      lineHeight: 1.15,
      minimumContrastRatio: 4.5,
      scrollback: scrollbackLines,
      linkHandler: { activate: (_event, address) => followAfterLooking(address) },
    });
    this.terminal.loadAddon(this.#fit);
    this.terminal.onData((data) => options.onInput(options.modifiers.apply(data)));
    this.terminal.onBinary((data) => options.onBinary(Uint8Array.from(data, (character) => character.charCodeAt(0))));
    this.terminal.onResize(options.onResize);
    this.terminal.attachCustomKeyEventHandler((event) => this.#takeKey(event));
    signal.addEventListener("abort", () => this.terminal.dispose());
  }

  /** To be called when the element is in the document, and seen. */
  open(): void {
    if (this.terminal.element) return this.fit();
    const { signal } = this.#options;
    this.terminal.open(this.element);
    followColours(signal, (theme) => {
      this.terminal.options.theme = theme;
    });
    this.element.addEventListener("paste", (event) => this.#takePaste(event), { capture: true, signal });
    const watch = new ResizeObserver(() => this.fit());
    watch.observe(this.element);
    signal.addEventListener("abort", () => watch.disconnect());
    this.fit();
  }

  get size(): TerminalSize {
    const { cols, rows } = this.terminal;
    return { cols, rows };
  }

  /** Shows what is fitted to somebody else's screen; where ours is smaller, one can scroll. */
  hold({ cols, rows }: TerminalSize): void {
    this.#isHeld = true;
    this.element.classList.add("held");
    this.terminal.resize(cols, rows);
  }

  /** Goes by the room that there is here again. */
  release(): void {
    this.#isHeld = false;
    this.element.classList.remove("held");
    this.fit();
  }

  /** As many columns and rows as there is room for. */
  fit(): void {
    if (!this.#isHeld && this.element.clientWidth > 0 && this.element.clientHeight > 0) this.#fit.fit();
  }

  /** Shows output. Resolves when more can be taken, so that a flood stays with the program that makes it. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#inWork += bytes.length;
    this.terminal.write(bytes, () => {
      this.#inWork -= bytes.length;
      if (this.#inWork <= inWorkMax / 2) this.#room?.();
    });
    while (this.#inWork > inWorkMax) {
      await new Promise<void>((resolve) => {
        this.#room = resolve;
      });
    }
  }

  /** A line of ours between those of the program. */
  note(words: string): void {
    this.terminal.write(`\r\n\x1b[0;2m${words}\x1b[0m\r\n`);
  }

  /** Nothing will be written where it stands. */
  hideCursor(): void {
    this.terminal.write("\x1b[?25l");
  }

  /** Types what the clipboard holds, less what would pretend to be the end of it. */
  paste(text: string): void {
    this.terminal.paste(text.replaceAll("\x1b", ""));
  }

  set canType(can: boolean) {
    this.terminal.options.disableStdin = !can;
    this.terminal.options.cursorInactiveStyle = can ? "outline" : "none";
  }

  set isRead(aloud: boolean) {
    this.terminal.options.screenReaderMode = aloud;
  }

  /** Returns false for keys that are not the program's. */
  #takeKey(event: KeyboardEvent): boolean {
    if (event.type !== "keydown" || !event.ctrlKey || !event.shiftKey || event.altKey) return true;
    if (event.code === "KeyV") return false; // The browser pastes.
    if (event.code === "KeyC") {
      event.preventDefault();
      void this.copy();
      return false;
    }
    if (event.code !== "KeyL" && event.code !== "KeyA") return true;
    event.preventDefault();
    if (event.code === "KeyA") this.terminal.selectAll();
    else this.#options.onLeave();
    return false;
  }

  /** Returns whether there was something selected and the browser let us. */
  async copy(): Promise<boolean> {
    const text = this.terminal.getSelection();
    if (!text) return false;
    const worked = navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    return (await worked) ?? document.execCommand("copy");
  }

  #takePaste(event: ClipboardEvent): void {
    event.preventDefault();
    event.stopPropagation();
    this.paste(event.clipboardData?.getData("text/plain") ?? "");
  }
}
