/** Short messages at the edge of the window. */
import { APIConnectionError, APIError } from "./api.ts";
import { messageOf, requestIdOf } from "./components/bits.ts";
import { iconButton } from "./components/button.ts";
import { icon } from "./components/icons.ts";
import { type Child, h } from "./dom.ts";

const shownMs = 6_000;
const shownMax = 4;

/** Reports a success. A message with a link stays longer. */
export function toast(...words: Child[]): void {
  show("info", h("span", {}, ...words));
}

/** Reports a failure, with the server's message. */
export function toastError(error: unknown): void {
  // A lost connection is shown by the bar at the top; a missing or different login by a separate page.
  if (error instanceof APIConnectionError || (error instanceof APIError && (error.status === 401 || error.reason === "other_account"))) return;
  if (error instanceof DOMException && error.name === "AbortError") return;
  show("error", messageOf(error), requestIdOf(error));
}

/** Creates the live region, which must exist before messages are added to it. */
export function createToasts(): void {
  document.body.append(h("div", { id: "toasts", class: "toasts", role: "status", "aria-label": "Messages" }));
}

function show(kind: "info" | "error", ...words: Child[]): void {
  const region = document.getElementById("toasts");
  if (!region) return;
  const element = h("div", `toast ${kind}`, icon(kind === "error" ? "warning" : "check"), h("div", "toast-words", ...words));
  const forMs = kind === "error" || element.querySelector("a") ? 2 * shownMs : shownMs;
  element.append(iconButton("Dismiss", "close", () => element.remove()));
  removeAfter(element, forMs);
  region.append(element);
  while (region.children.length > shownMax) region.firstElementChild?.remove();
}

/** Removes the message after a time, but not while it is hovered or focused. */
function removeAfter(element: HTMLElement, forMs: number): void {
  const start = (): ReturnType<typeof setTimeout> => setTimeout(() => element.remove(), forMs);
  let timer = start();
  for (const event of ["pointerenter", "focusin"]) element.addEventListener(event, () => clearTimeout(timer));
  for (const event of ["pointerleave", "focusout"]) {
    element.addEventListener(event, () => {
      clearTimeout(timer);
      timer = start();
    });
  }
}
