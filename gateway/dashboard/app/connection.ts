/** Tracks whether the server can be reached, and shows a bar while it cannot. */
import { h } from "./dom.ts";

const probeMs = 2_000;

let bar: HTMLElement | undefined;
let probe: ReturnType<typeof setTimeout> | undefined;

/** Shows the bar and probes the server until it answers. */
export function connectionLost(): void {
  if (bar) return;
  bar = h("div", { class: "connection-bar", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), "Connection lost. Reconnecting…");
  document.body.append(bar);
  askLater();
}

/** Removes the bar and wakes everything that waits for the connection. */
export function connectionWorks(): void {
  if (!bar) return;
  clearTimeout(probe);
  bar.remove();
  bar = undefined;
  document.dispatchEvent(new Event("sandgate:reconnected"));
}

function askLater(): void {
  probe = setTimeout(async () => {
    const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => undefined);
    if (answer) connectionWorks();
    else askLater();
  }, probeMs);
}
