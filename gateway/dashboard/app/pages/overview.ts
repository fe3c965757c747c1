/** The overview page: current usage, and activity in the last hour. */
import type { AccountUsage, KeyUsage } from "../../../../shared/schemas/accounts.ts";
import { call } from "../api.ts";
import { chart, type Point } from "../charts.ts";
import { errorNotice, figure, meter, pageHeader, skeleton } from "../components/bits.ts";
import { linkButton } from "../components/button.ts";
import { firstSteps } from "../components/first-steps.ts";
import { table } from "../components/table.ts";
import { fill, h } from "../dom.ts";
import { clockTime, count, plural } from "../format.ts";
import { poll } from "../poll.ts";
import type { View, Visit } from "../router.ts";

const everyMs = 10_000;
const hourMs = 3_600_000;

export function overviewPage({ signal }: Visit): View {
  const place = h("div", "stack", skeleton(6));
  const body = overview(() => turns.now());
  const turns = poll({
    everyMs,
    signal,
    work: async () => {
      body.show(await call<AccountUsage>("GET", "/v1/account/usage", { signal }));
      if (!body.element.isConnected) fill(place, body.element);
    },
    failed: (error) => {
      if (!body.element.isConnected) fill(place, errorNotice(error, turns.now));
    },
  });
  const header = pageHeader("Overview", null, linkButton("New sandbox", "/sandboxes?new", "primary"));
  return { title: "Overview", element: h("div", "page", header, place) };
}

function overview(refresh: () => void): { readonly element: HTMLElement; show(usage: AccountUsage): void } {
  const steps = firstSteps(refresh);
  const figures = h("div", "figures");
  const clockOf = (at: number): string => clockTime(new Date(at).toISOString());
  const common = { scale: count, least: 4, ends: clockOf, empty: "Nothing in the last hour." };
  const requests = chart({
    ...common,
    title: "Requests per minute",
    kind: "bars",
    read: ({ at, value, extra = 0 }) => `${clockOf(at)}  ${count(value)} allowed${extra ? `, ${count(extra)} refused` : ""}`,
  });
  const sandboxes = chart({ ...common, title: "Sandboxes", kind: "line", read: ({ at, value }) => `${clockOf(at)}  ${plural(value, "sandbox")}` });
  const keys = keyTable();
  const element = h("div", "stack", steps.element, figures, h("div", "charts", requests.element, sandboxes.element), keys.element);
  const show = (usage: AccountUsage): void => {
    const to = Date.parse(usage.timestamp);
    steps.show(usage);
    fill(figures, ...figuresOf(usage));
    const draw = (drawing: typeof requests, pick: (minute: AccountUsage["history"][number]) => Omit<Point, "at">): void => {
      const points = usage.history.map((minute) => ({ at: Date.parse(minute.timestamp), ...pick(minute) }));
      drawing.show(points, to - hourMs, to);
    };
    draw(requests, ({ requests: all, refused }) => ({ value: Math.max(0, all - refused), extra: refused }));
    draw(sandboxes, ({ sandboxes: value }) => ({ value }));
    keys.show(usage.keys);
  };
  return { element, show };
}

function figuresOf({ keys, sandboxes, history }: AccountUsage): HTMLElement[] {
  const sum = (pick: (key: KeyUsage) => number): number => keys.reduce((total, key) => total + pick(key), 0);
  const limit = sum(({ requests }) => requests.limit);
  const remaining = sum(({ requests }) => requests.remaining);
  const room = sum((key) => key.sandboxes.limit);
  const refused = history.reduce((total, minute) => total + minute.refused, 0);
  const waiting = [sandboxes.creating ? `${sandboxes.creating} starting` : "", sandboxes.error ? `${sandboxes.error} failed` : ""].filter(Boolean).join(", ");
  return [
    figure(
      "Running sandboxes",
      count(sandboxes.running),
      `of ${count(room)}${waiting ? ` · ${waiting}` : ""}`,
      meter("Sandboxes in use", sandboxes.total, room),
    ),
    figure("Requests, last minute", count(limit - remaining), `of ${count(limit)}`, meter("Requests in use", limit - remaining, limit)),
    figure("Requests left now", count(remaining), `across ${plural(keys.length, "allowance")}`),
    figure("Refused, last hour", count(refused), refused ? "over the limit" : "none over the limit"),
  ];
}

function keyTable(): { readonly element: HTMLElement; show(keys: readonly KeyUsage[]): void } {
  const list = table<KeyUsage>(
    "Use by key",
    [
      {
        title: "Key",
        cell: ({ name, prefix, dashboard }) =>
          h("div", "two-lines", h("span", "strong clip", dashboard ? "This dashboard" : name), prefix ? h("code", {}, `${prefix}…`) : null),
      },
      { title: "Requests", cell: ({ name, requests }) => amount(`Requests of ${name}`, requests.limit - requests.remaining, requests.limit) },
      { title: "Sandboxes", cell: ({ name, sandboxes }) => amount(`Sandboxes of ${name}`, sandboxes.used, sandboxes.limit) },
    ],
    ({ id }) => id,
  );
  const head = h("div", "section-head", h("h2", {}, "Use by key"), h("a", { class: "quiet-link", href: "/settings/keys" }, "Manage keys"));
  return { element: h("section", {}, head, list.element), show: list.show };
}

function amount(label: string, used: number, limit: number): HTMLElement {
  return h("div", "amount", h("span", "number", `${count(used)} / ${count(limit)}`), meter(label, used, limit));
}
