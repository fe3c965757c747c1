/** Pages shown in place of one that cannot be shown. */
import type { Account } from "../../../../shared/schemas/accounts.ts";
import { errorNotice } from "../components/bits.ts";
import { button, linkButton } from "../components/button.ts";
import { mark } from "../components/icons.ts";
import { type Child, h } from "../dom.ts";
import type { View } from "../router.ts";
import { isLoggedIn } from "../session.ts";

export function notFoundPage(): View {
  const way = isLoggedIn() ? linkButton("Go to the overview", "/") : linkButton("Log in", "/login");
  const layout = isLoggedIn() ? "shell" : "bare";
  return { title: "Page not found", element: notice("Page not found", ["There is nothing at this address."], way, layout), layout };
}

/** Shown for a suspended account. */
export function suspendedPage(message: string): View {
  // A full reload, because nothing of this session is usable any more.
  const other = button({ label: "Log in with another account", onClick: () => location.assign("/login") });
  const words = ["This account cannot be used at the moment. Ask the operator of this server about it.", h("span", "quiet", message)];
  return { title: "Account suspended", element: notice("Account suspended", words, other, "bare"), layout: "bare" };
}

/** Shown when another account has logged in in another tab, whose cookie all further calls would carry. */
export function otherAccountPage(former: Account, now: Account): View {
  const nameOf = ({ email, name }: Account): string => email ?? name;
  const goOn = button({ label: `Go on as ${nameOf(now)}`, kind: "primary", onClick: () => location.assign("/") });
  const words = [
    h("span", {}, "You are logged in as ", h("strong", {}, nameOf(now)), " in another tab. This page belonged to ", h("strong", {}, nameOf(former)), "."),
    h("span", "quiet", "Nothing can be done from this page any more."),
  ];
  return { title: "Another account is logged in", element: notice("Another account is logged in", words, goOn, "bare"), layout: "bare" };
}

/** The server did not answer when the page was opened. */
export function unreachablePage(error: unknown): View {
  const again = button({ label: "Try again", onClick: () => location.reload() });
  return { title: "Not reachable", element: notice("Sandgate is not reachable", [errorNotice(error)], again, "bare"), layout: "bare" };
}

function notice(title: string, words: readonly Child[], action: Child, layout: "shell" | "bare"): HTMLElement {
  const content = h(
    "div",
    "notice-page",
    layout === "bare" ? mark() : null,
    h("h1", { tabindex: -1 }, title),
    ...words.map((word) => h("div", {}, word)),
    action,
  );
  return layout === "bare" ? h("main", "bare", content) : content;
}
