/** Short messages at the edge of the window. */
import { APIConnectionError, APIError } from "./api.ts";
import { messageOf, requestIdOf } from "./components/bits.ts";
import { iconButton } from "./components/button.ts";
import { icon } from "./components/icons.ts";
import { type Child, h } from "./dom.ts";

const shownMs = 6_000;
const shownMax = 4;

/** Says that something worked. What is linked to stays a while longer. */
export function toast(...words: Child[]): void {
  show("info", h("span", {}, ...words));
}

/** Says what did not work, with the server's words. */
export function toastError(error: unknown): void {
  // The bar at the top says that the server is away, and a page of its own that nobody is logged in, or somebody else.
  if (error instanceof APIConnectionError || (error instanceof APIError && (error.status === 401 || error.reason === "other_account"))) return;
  if (error instanceof DOMException && error.name === "AbortError") return;
  show("error", messageOf(error), requestIdOf(error));
}

/** The live regions have to be there before something is said in them. */
export function createToasts(): void {
  document.body.append(h("div", { id: "toasts", class: "toasts", role: "status", "aria-label": "Messages" }));
}

function show(kind: "info" | "error", ...words: Child[]): void {
  const region = document.getElementById("toasts");
  if (!region) return;
  const element = h("div", { class: `toast ${kind}` }, icon(kind === "error" ? "warning" : "check"), h("div", { class: "toast-words" }, ...words));
  const forMs = kind === "error" || element.querySelector("a") ? 2 * shownMs : shownMs;
  element.append(iconButton("Dismiss", "close", () => element.remove()));
  removeAfter(element, forMs);
  region.append(element);
  while (region.children.length > shownMax) region.firstElementChild?.remove();
}

/** Not while somebody points at it or has the focus in it. */
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
