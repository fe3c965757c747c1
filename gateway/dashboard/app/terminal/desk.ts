/** The open terminals of one sandbox: one is visible, the others keep running behind it. */
import { h, uniqueId } from "../dom.ts";
import { barOf } from "./bar.ts";
import { Live } from "./live.ts";
import { Modifiers } from "./modifiers.ts";

interface Place {
  readonly live: Live;
  readonly tab: HTMLButtonElement;
  readonly panel: HTMLElement;
  readonly bar: HTMLElement;
}

export interface DeskOptions {
  readonly sandboxId: string;
  /** Called when another terminal becomes visible, or the visible one changes. */
  readonly onChange: () => void;
}

export class Desk {
  readonly tabs = h("div", { class: "terminal-tabs", role: "tablist", "aria-label": "Terminals" });
  readonly panels = h("div", "terminal-panels");
  /** Shared by all terminals. */
  readonly modifiers = new Modifiers();
  readonly #options: DeskOptions;
  readonly #places: Place[] = [];
  #seen: Place | undefined;
  #number = 0;
  #aloud = false;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** The visible terminal. */
  get seen(): Live | undefined {
    return this.#seen?.live;
  }

  get sessionIds(): string[] {
    return this.#places.flatMap(({ live }) => live.sessionId ?? []);
  }

  /** Starts a new shell and shows it. */
  async start(): Promise<void> {
    const { live } = this.#add();
    await live.start();
  }

  /** Shows a running session. */
  async join(sessionId: string, as: "watch" | "write"): Promise<void> {
    const { live } = this.#add();
    await live.join(sessionId, as);
  }

  /** Replaces the visible terminal with a new shell. */
  async startInstead(): Promise<void> {
    this.close();
    await this.start();
  }

  /** Removes the visible terminal from the page; its session keeps running. */
  close(): void {
    const place = this.#seen;
    if (!place) return;
    const at = this.#places.indexOf(place);
    this.#places.splice(at, 1);
    place.live.dispose();
    place.tab.remove();
    place.panel.remove();
    this.#seen = undefined;
    const next = this.#places[Math.min(at, this.#places.length - 1)];
    if (next) this.#show(next);
    else this.#options.onChange();
  }

  /** Whether screen readers announce output. */
  set isRead(aloud: boolean) {
    this.#aloud = aloud;
    for (const { live } of this.#places) live.screen.isRead = aloud;
  }

  focus(): void {
    this.#seen?.live.screen.terminal.focus();
  }

  dispose(): void {
    for (const { live } of this.#places.splice(0)) live.dispose();
  }

  #add(): Place {
    this.#number += 1;
    const label = `Terminal ${this.#number}`;
    const id = uniqueId("terminal");
    const tab = h("button", { type: "button", role: "tab", class: "terminal-tab", id: `${id}-tab`, "aria-controls": id }, label);
    const live: Live = new Live({
      sandboxId: this.#options.sandboxId,
      label,
      modifiers: this.modifiers,
      onChange: () => this.#changed(place),
      onTitle: (title) => {
        // Set by a program, so it may contain anything.
        const words = title.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "").slice(0, 60);
        tab.title = words;
        tab.textContent = words || label;
      },
      onLeave: () => tab.focus(),
    });
    const bar = h("div", "terminal-bar-place");
    const panel = h("div", { class: "terminal-panel", id, role: "tabpanel", "aria-labelledby": `${id}-tab` }, bar, live.screen.element);
    const place = { live, tab, panel, bar };
    this.#places.push(place);
    this.tabs.append(tab);
    this.panels.append(panel);
    tab.addEventListener("click", () => this.#show(place));
    tab.addEventListener("keydown", (event) => this.#takeKey(event, place));
    live.screen.isRead = this.#aloud;
    this.#show(place);
    return place;
  }

  #show(place: Place): void {
    this.#seen = place;
    for (const { tab, panel } of this.#places) {
      const isSeen = panel === place.panel;
      tab.setAttribute("aria-selected", String(isSeen));
      tab.tabIndex = isSeen ? 0 : -1;
      panel.hidden = !isSeen;
    }
    // Before `open`, because a terminal can only be measured while it is visible.
    this.#options.onChange();
    place.live.screen.open();
    place.live.screen.terminal.focus();
  }

  #changed(place: Place): void {
    const bar = barOf(place.live.state, {
      takeOver: () => void place.live.takeOver(),
      reconnect: () => void place.live.reconnect(),
      startAnother: () => void this.startInstead(),
      close: () => this.close(),
    });
    const hadFocus = place.bar.contains(document.activeElement);
    place.bar.replaceChildren(...(bar ? [bar] : []));
    place.tab.classList.toggle("over", !place.live.isRunning && place.live.state.name !== "opening");
    if (hadFocus) place.live.screen.terminal.focus();
    if (place === this.#seen) this.#options.onChange();
  }

  #takeKey({ key }: KeyboardEvent, place: Place): void {
    const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    const size = this.#places.length;
    const next = step && this.#places[(this.#places.indexOf(place) + step + size) % size];
    if (next) {
      this.#show(next);
      next.tab.focus();
    } else if (key === "ArrowDown") this.focus();
  }
}
