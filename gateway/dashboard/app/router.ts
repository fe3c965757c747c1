/** Maps paths to pages, and navigates between them without reloading the document. */

export interface Visit {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Aborted when the page is left, to end its calls, streams and timers. */
  readonly signal: AbortSignal;
}

export interface View {
  readonly title: string;
  readonly element: HTMLElement;
  /** `bare` pages fill the window, without the frame. */
  readonly layout?: "shell" | "bare";
}

export interface Route {
  /** Segments such as `:id` become parameters. */
  readonly path: string;
  readonly open: (visit: Visit) => View | undefined;
}

interface Table {
  readonly routes: readonly Route[];
  readonly otherwise: (visit: Visit) => View;
  readonly show: (view: View, path: string) => void;
}

let table: Table | undefined;
let leaving = new AbortController();

/** Shows the page of the current address, and handles links and the back and forward buttons from now on. */
export function startRouter(given: Table): void {
  table = given;
  window.addEventListener("popstate", render);
  document.addEventListener("click", followLink);
  render();
}

/** Ends the current page with its calls, streams and timers, and stops handling links. */
export function stopRouter(): void {
  leaving.abort();
  table = undefined;
}

/** Navigates to a path of these pages. */
export function navigate(path: string, { replace = false }: { replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  render();
  window.scrollTo(0, 0);
}

/** `next` if it is a path of this origin, otherwise `/`: a crafted link must not lead to another site after the login. */
export function safePath(next: string | null): string {
  if (!next?.startsWith("/") || /^\/[/\\]/.test(next)) return "/";
  const url = URL.canParse(next, location.origin) ? new URL(next, location.origin) : undefined;
  if (url?.origin !== location.origin || url.pathname.startsWith("//")) return "/";
  return url.pathname + url.search + url.hash;
}

/** The path of the login page, which returns to the current page afterwards. */
export function loginPath(): string {
  const here = location.pathname + location.search + location.hash;
  if (["/login", "/signup"].includes(location.pathname)) return here;
  return here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`;
}

function render(): void {
  if (!table) return;
  leaving.abort();
  leaving = new AbortController();
  const query = new URLSearchParams(location.search);
  const path = location.pathname;
  for (const route of table.routes) {
    const params = match(route.path, path);
    if (!params) continue;
    const view = route.open({ params, query, signal: leaving.signal });
    if (view) table.show(view, path);
    return;
  }
  table.show(table.otherwise({ params: {}, query, signal: leaving.signal }), path);
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = path.replace(/(?<=.)\/$/, "").split("/");
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":") && value) params[part.slice(1)] = value;
    else if (part !== value) return undefined;
  }
  return params;
}

function followLink(event: MouseEvent): void {
  if (!table || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  // The browser handles links within the page.
  if (link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  if (link.href !== location.href) navigate(link.pathname + link.search + link.hash);
}
