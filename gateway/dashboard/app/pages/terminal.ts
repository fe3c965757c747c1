/** The terminals of a sandbox. With `?session=`, one session, read-only. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import { APIError, call } from "../api.ts";
import { errorNotice } from "../components/bits.ts";
import { linkButton } from "../components/button.ts";
import { icon } from "../components/icons.ts";
import { fill, h } from "../dom.ts";
import type { View, Visit } from "../router.ts";

export function terminalPage({ params, query, signal }: Visit): View {
  const id = params.id ?? "";
  const path = `/sandboxes/${encodeURIComponent(id)}`;
  const place = h("div", "terminal-place");
  const name = h("span", {}, "Sandbox");
  const begin = async (): Promise<void> => {
    // Loaded only when needed: the emulator is larger than all other pages together.
    const emulator = import("../terminal/workplace.ts").catch(() => Promise.reject(new Error("The terminal could not be loaded.")));
    const [sandbox, { openWorkplace }] = await Promise.all([call<SandboxInfo>("GET", `/v1${path}`, { signal }), emulator]);
    if (signal.aborted) return;
    name.textContent = sandbox.name;
    document.title = `Terminal · ${sandbox.name} · Sandgate`;
    await openWorkplace({ place, sandboxId: id, watched: query.get("session"), signal });
  };
  begin().catch((error: unknown) => {
    if (!signal.aborted) fill(place, error instanceof APIError && error.status === 404 ? gone() : errorNotice(error, () => location.reload()));
  });
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: path }, icon("back"), name));
  const heading = h("h1", { class: "visually-hidden", tabindex: -1 }, "Terminal");
  const element = h("div", "terminal-page", crumbs, heading, place);
  followSeenHeight(element, signal);
  return { title: "Terminal", element };
}

function gone(): HTMLElement {
  return h("div", "empty", h("h2", {}, "There is no such sandbox. It may have been deleted."), linkButton("All sandboxes", "/sandboxes"));
}

/**
 * Tracks the height that an on-screen keyboard leaves visible. Most browsers shrink the window for the keyboard, as the page
 * requests with `interactive-widget`; Safari covers the page instead, which shows only in the visual viewport.
 */
function followSeenHeight(element: HTMLElement, signal: AbortSignal): void {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = (): void => {
    // After zooming in, the user sees only a part of the page on purpose.
    const isCovered = viewport.scale === 1 && viewport.height < window.innerHeight - 1;
    if (isCovered) element.style.setProperty("--seen-height", `${viewport.height}px`);
    else element.style.removeProperty("--seen-height");
    // The browser has scrolled the page to show the input, which is visible anyway.
    if (isCovered) window.scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit, { signal });
  fit();
}
