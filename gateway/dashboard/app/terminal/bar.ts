/** The status bar of a terminal, with its actions. */
import { messageOf } from "../components/bits.ts";
import { button } from "../components/button.ts";
import { icon } from "../components/icons.ts";
import { type Child, h } from "../dom.ts";
import type { State } from "./live.ts";

export interface BarActions {
  readonly takeOver: () => void;
  readonly reconnect: () => void;
  readonly startAnother: () => void;
  readonly close: () => void;
}

/** The bar for a state; undefined while all is well. */
export function barOf(state: State, actions: BarActions): HTMLElement | undefined {
  switch (state.name) {
    case "opening":
      return bar("quiet passing", spinner(), "Connecting…");
    case "reconnecting":
      return bar("warning passing", spinner(), "Connection lost. Reconnecting… What runs in the sandbox goes on.");
    case "live":
      if (state.isWriter) return undefined;
      return bar(
        "quiet",
        h("strong", {}, "Read only"),
        "What is typed here does not reach the sandbox.",
        button({ label: "Take over", size: "small", onClick: actions.takeOver }),
      );
    case "exited": {
      const { exit_code, signal } = state.end;
      const words = signal ? `Ended by ${signal} (exit code ${exit_code})` : `Ended with exit code ${exit_code}`;
      return bar("quiet", icon(exit_code === 0 ? "check" : "stop"), h("span", {}, words), again(actions));
    }
    case "lost":
      return bar(
        "error",
        icon("warning"),
        h("span", {}, messageOf(state.error)),
        again(actions, button({ label: "Reconnect", size: "small", onClick: actions.reconnect })),
      );
  }
}

function again({ startAnother, close }: BarActions, first?: Child): HTMLElement {
  const another = button({ label: "Start a new one", size: "small", onClick: startAnother });
  return h("div", "actions", first, another, button({ label: "Close", size: "small", onClick: close }));
}

const spinner = (): HTMLElement => h("span", { class: "spinner", "aria-hidden": "true" });

function bar(kind: "quiet" | "quiet passing" | "warning passing" | "error", ...words: Child[]): HTMLElement {
  return h("div", { class: `terminal-bar ${kind}`, role: kind === "error" ? "alert" : "status" }, ...words);
}
