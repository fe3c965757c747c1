/** Starts the pages: loads the session, then shows the page of the current address. */
import type { Session } from "./api.ts";
import { APIError, call, isSuspension, reactWith } from "./api.ts";
import { keepTimesTrue } from "./components/bits.ts";
import { createShell, type Shell } from "./components/shell.ts";
import { fill } from "./dom.ts";
import { accountPage } from "./pages/account.ts";
import { loginPage, signupPage } from "./pages/auth.ts";
import { keysPage } from "./pages/keys.ts";
import { notFoundPage, otherAccountPage, suspendedPage, unreachablePage } from "./pages/notices.ts";
import { overviewPage } from "./pages/overview.ts";
import { sandboxPage } from "./pages/sandbox.ts";
import { sandboxesPage } from "./pages/sandboxes.ts";
import { snapshotsPage } from "./pages/snapshots.ts";
import { terminalPage } from "./pages/terminal.ts";
import { loginPath, navigate, type Route, safePath, startRouter, stopRouter, type View, type Visit } from "./router.ts";
import { account, checkSession, forget, isLoggedIn, loadSession } from "./session.ts";
import { createToasts, toast } from "./toast.ts";

const app = document.getElementById("app") as HTMLElement;
let shell: Shell | undefined;
let shownBefore = false;

const members =
  (open: (visit: Visit) => View) =>
  (visit: Visit): View | undefined => {
    if (isLoggedIn()) return open(visit);
    queueMicrotask(() => navigate(loginPath(), { replace: true }));
    return undefined;
  };

const guests =
  (open: (visit: Visit) => View) =>
  (visit: Visit): View | undefined => {
    if (!isLoggedIn()) return open(visit);
    queueMicrotask(() => navigate(safePath(visit.query.get("next")), { replace: true }));
    return undefined;
  };

const toKeys = (): undefined => queueMicrotask(() => navigate("/settings/keys", { replace: true })) as undefined;

const routes: readonly Route[] = [
  { path: "/", open: members(overviewPage) },
  { path: "/login", open: guests(loginPage) },
  { path: "/signup", open: guests(signupPage) },
  { path: "/sandboxes", open: members(sandboxesPage) },
  { path: "/sandboxes/:id", open: members(sandboxPage) },
  { path: "/sandboxes/:id/terminal", open: members(terminalPage) },
  { path: "/snapshots", open: members(snapshotsPage) },
  { path: "/settings", open: toKeys },
  { path: "/settings/keys", open: members(keysPage) },
  { path: "/settings/account", open: members(accountPage) },
];

/** Shows a page inside the frame, or instead of it. When it replaces another page, the focus moves to its heading. */
function show(view: View, path: string): void {
  document.title = `${view.title} · Sandgate`;
  if (view.layout === "bare" || !isLoggedIn()) {
    shell = undefined;
    fill(app, view.element);
  } else {
    if (!shell) {
      shell = createShell();
      fill(app, shell.element);
    }
    shell.show(view.element, path);
  }
  const wanted = view.element.querySelector<HTMLElement>("[data-autofocus]") ?? (shownBefore ? view.element.querySelector("h1") : null);
  wanted?.focus({ preventScroll: true });
  shownBefore = true;
}

/** Replaces everything with one page. Only a reload leads on from it. */
function alone(view: View): void {
  stopRouter();
  closeDialogs();
  show({ ...view, layout: "bare" }, location.pathname);
}

function closeDialogs(): void {
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
}

function askToLogIn(): void {
  if (!isLoggedIn()) return;
  closeDialogs();
  forget();
  navigate(loginPath(), { replace: true });
  toast("You are not logged in any more.");
}

/** Retires this page after another account has logged in: it must never make calls for that account. */
async function giveWay(): Promise<void> {
  if (!isLoggedIn()) return;
  const former = account();
  forget();
  stopRouter();
  closeDialogs();
  try {
    alone(otherAccountPage(former, (await call<Session>("GET", "/v1/account", { anonymous: true })).account));
  } catch {
    location.reload();
  }
}

/** Rechecks the session when the page becomes visible or returns from the back-forward cache: another tab may have changed it. */
function noticeChanges(): void {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isLoggedIn()) checkSession().catch(() => {});
  });
  window.addEventListener("pagehide", ({ persisted }) => {
    if (persisted) document.body.replaceChildren();
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) location.reload();
  });
}

async function start(): Promise<void> {
  createToasts();
  keepTimesTrue();
  noticeChanges();
  reactWith({ unauthorized: askToLogIn, suspended: (message) => alone(suspendedPage(message)), otherAccount: () => void giveWay() });
  try {
    await loadSession();
  } catch (error) {
    const asksToEnter = ["/login", "/signup"].includes(location.pathname);
    if (isSuspension(error) && !asksToEnter) return alone(suspendedPage(error.message));
    if (!isSuspension(error) && !(error instanceof APIError && error.status === 401)) return waitForServer(error);
  }
  startRouter({ routes, otherwise: notFoundPage, show });
}

/** Shows that the server is unreachable; without a session nothing else can be shown. */
function waitForServer(error: unknown): void {
  alone(unreachablePage(error));
  document.addEventListener("sandgate:reconnected", () => location.reload(), { once: true });
}

await start();
