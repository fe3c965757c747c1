/** The visible terminal: xterm.js with colours, clipboard, keys and size. */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import type { TerminalSize } from "../../../../shared/client/session/session.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { followColours } from "./colours.ts";
import type { Modifiers } from "./modifiers.ts";

/** The most bytes that xterm.js may be processing. Beyond it, output stays on the server and the program waits. */
const inWorkMax = 128 * 1024;
const scrollbackLines = 10_000;
const fontSizePx = 13;

export interface ScreenOptions {
  readonly label: string;
  readonly signal: AbortSignal;
  readonly modifiers: Modifiers;
  /** Called with typed or pasted text, and with the terminal's replies to programs. */
  readonly onInput: (data: string) => void;
  readonly onBinary: (bytes: Uint8Array) => void;
  readonly onResize: (size: TerminalSize) => void;
  /** Called when the user moves the keyboard focus out of the terminal. */
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

  /** Opens the terminal. The element must be in the document and visible. */
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

  /** Uses the size of the writer's screen; a smaller screen here scrolls. */
  hold({ cols, rows }: TerminalSize): void {
    this.#isHeld = true;
    this.element.classList.add("held");
    this.terminal.resize(cols, rows);
  }

  /** Fits the terminal to its own element again. */
  release(): void {
    this.#isHeld = false;
    this.element.classList.remove("held");
    this.fit();
  }

  /** Resizes to as many columns and rows as fit. */
  fit(): void {
    if (!this.#isHeld && this.element.clientWidth > 0 && this.element.clientHeight > 0) this.#fit.fit();
  }

  /** Shows output. Resolves when there is room for more, so that backpressure reaches the program. */
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

  /** Writes a line of our own into the output. */
  note(words: string): void {
    this.terminal.write(`\r\n\x1b[0;2m${words}\x1b[0m\r\n`);
  }

  /** Hides the cursor, because nothing more will be written. */
  hideCursor(): void {
    this.terminal.write("\x1b[?25l");
  }

  /** Pastes text without escape characters, which could fake the end of a bracketed paste. */
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

  /** Handles the page's shortcuts. Returns false for keys that the program must not receive. */
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

  /** Copies the selection. Returns false when nothing is selected or the browser refuses. */
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

/** Shows where a link of a program leads, which its text may hide, and opens it in a window without access to this one. */
function followAfterLooking(address: string): void {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") return;
  openDialog({
    title: "Open this address?",
    words: "A program in the sandbox has printed this link.",
    body: [h("pre", { class: "link-target", tabindex: 0, "aria-label": "Address" }, url.href)],
    submit: { label: "Open", kind: "danger" },
    onSubmit: async () => void window.open(url.href, "_blank", "noopener,noreferrer"),
  });
}
