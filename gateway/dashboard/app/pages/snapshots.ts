/** The list of the account's snapshots, if the server supports them. */

import type { SandboxPage } from "../../../../shared/schemas/sandboxes.ts";
import type { SnapshotInfo, SnapshotPage } from "../../../../shared/schemas/snapshots.ts";
import { APIError, call } from "../api.ts";
import { emptyState, errorNotice, pageHeader, skeleton, timeAgo } from "../components/bits.ts";
import { button, copyButton, iconButton, linkButton } from "../components/button.ts";
import { openRestore, sandboxLink } from "../components/snapshot-dialogs.ts";
import { type Column, pager, table } from "../components/table.ts";
import { confirmDialog } from "../dialog.ts";
import { fill, h } from "../dom.ts";
import { bytes, plural, shortId } from "../format.ts";
import { poll } from "../poll.ts";
import type { View, Visit } from "../router.ts";
import { hasFeature } from "../session.ts";
import { toast } from "../toast.ts";

const everyMs = 10_000;
const pageSize = 20;
const words = "Files of sandboxes as they were at one moment, to start others from.";

export function snapshotsPage(visit: Visit): View {
  if (hasFeature("snapshots")) return { title: "Snapshots", element: list(visit) };
  const none = emptyState("snapshots", "Snapshots are not available on this server yet.", "Sandboxes keep their files until they are deleted.");
  return { title: "Snapshots", element: h("div", { class: "page" }, pageHeader("Snapshots", words), none) };
}

function list({ signal, query }: Visit): HTMLElement {
  let page = 1;
  let total = 0;
  let sources: ReadonlySet<string> = new Set();
  const place = h("div", { class: "stack" }, skeleton());
  const pausedWords = h("p", { class: "quiet", role: "status" });
  const asked = query.get("show");
  const rows = table<ShownSnapshot>(
    "Snapshots",
    columns((snapshot) => confirmDelete(snapshot, refresh)),
    ({ id }) => id,
    ({ id }) => id === asked,
  );
  const pages = pager((wanted) => {
    page = wanted;
    refresh();
  });
  const deleteAll = button({ label: "Delete all", kind: "danger-quiet", onClick: () => confirmDeleteAll(total, refresh) });
  deleteAll.hidden = true;
  const show = ({ data, pagination }: SnapshotPage): void => {
    total = pagination.total_items;
    deleteAll.hidden = total === 0;
    pausedWords.textContent = "";
    rows.show(data.map((snapshot) => ({ ...snapshot, has_source: sources.has(snapshot.source_sandbox_id) })));
    pages.show(pagination);
    if (total === 0) fill(place, nothingYet());
    else if (!rows.element.isConnected) fill(place, rows.element, pages.element);
  };
  const turns = poll({
    everyMs,
    signal,
    work: async () => {
      const answer = await call<SnapshotPage>("GET", `/v1/snapshots/list?page=${page}&page_size=${pageSize}`, { signal });
      const isPastEnd = answer.data.length === 0 && page > 1;
      // The last page may have become empty.
      if (isPastEnd) page = Math.max(1, answer.pagination.total_pages);
      if (isPastEnd) return void setTimeout(refresh);
      // The list is useful even without links.
      sources = await existing(answer.data, signal).catch(() => sources);
      show(answer);
    },
    failed: (error) => {
      const limited = error instanceof APIError && error.status === 429;
      pausedWords.textContent = limited ? `Not live at the moment: ${error.message}` : "";
      if (!rows.element.isConnected && !limited) fill(place, errorNotice(error, refresh));
    },
  });
  function refresh(): void {
    turns.now();
  }
  return h("div", { class: "page" }, pageHeader("Snapshots", h("span", {}, words, pausedWords), deleteAll), place);
}

function confirmDelete({ id, name }: SnapshotInfo, then: () => void): void {
  const asks = h("span", {}, h("strong", {}, name), " cannot be restored any more. Sandboxes that were made from it live on.");
  confirmDialog("Delete this snapshot?", asks, "Delete snapshot", async () => {
    await call("DELETE", `/v1/snapshots/${encodeURIComponent(id)}`);
    toast(`${name} is deleted`);
    then();
  });
}

function confirmDeleteAll(total: number, then: () => void): void {
  const asks = `${plural(total, "snapshot")} cannot be restored any more. Sandboxes that were made from them live on.`;
  confirmDialog("Delete all snapshots?", asks, "Delete all", async () => {
    const { deleted_count, errors = [] } = await call<{ deleted_count: number; errors?: unknown[] }>("DELETE", "/v1/snapshots/delete-all");
    toast(`${plural(deleted_count, "snapshot")} deleted${errors.length ? `, ${errors.length} could not be` : ""}`);
    then();
  });
}

function nothingYet(): HTMLElement {
  const how = "Open a sandbox and press “Snapshot”: its files are kept here, also when the sandbox is deleted.";
  return emptyState("snapshots", "No snapshots yet", how, linkButton("Go to the sandboxes", "/sandboxes", "primary"));
}

/** The most pages of sandboxes that are searched; with more sandboxes, some links are missing. */
const pagesMax = 3;

const ways = {
  application: ["Application", "Processes stood still while it was taken"],
  crash: ["Quick", "It was taken while processes went on"],
} as const;

interface ShownSnapshot extends SnapshotInfo {
  /** Whether its source sandbox still exists. */
  readonly has_source: boolean;
}

function columns(remove: (snapshot: SnapshotInfo) => void): readonly Column<ShownSnapshot>[] {
  return [
    { title: "Name", cell: nameCell },
    { title: "Taken of", cell: sourceCell, wide: true },
    { title: "Consistency", cell: consistencyCell, wide: true },
    { title: "Size", cell: ({ size_bytes }) => h("span", { class: "number" }, bytes(size_bytes)), wide: true, align: "end" },
    { title: "Created", cell: ({ created_at }) => timeAgo(created_at), align: "end" },
    { title: "", cell: (snapshot) => actions(snapshot, remove), align: "end" },
  ];
}

/** The ids of the source sandboxes that still exist. */
async function existing(snapshots: readonly SnapshotInfo[], signal: AbortSignal): Promise<ReadonlySet<string>> {
  const wanted = new Set(snapshots.map(({ source_sandbox_id }) => source_sandbox_id));
  const found = new Set<string>();
  for (let page = 1, pages = 1; page <= Math.min(pages, pagesMax) && found.size < wanted.size; page++) {
    const { data, pagination } = await call<SandboxPage>("GET", `/v1/sandboxes/list?page=${page}&page_size=100`, { signal });
    pages = pagination.total_pages;
    for (const { id } of data) if (wanted.has(id)) found.add(id);
  }
  return found;
}

/** Includes what the columns hidden on narrow screens would show. */
function nameCell({ id, name, size_bytes, consistency }: SnapshotInfo): HTMLElement {
  const short = h(
    "span",
    { class: "id" },
    h("code", { title: id }, shortId(id)),
    copyButton(() => id, "Copy id"),
  );
  const narrow = h("span", { class: "quiet narrow-only" }, `${bytes(size_bytes)} · ${ways[consistency][0]}`);
  return h("div", { class: "two-lines names" }, h("span", { class: "strong clip", title: name }, name), h("div", { class: "wide-only" }, short), narrow);
}

function sourceCell({ source_sandbox_id: id, source_sandbox_name: name, has_source }: ShownSnapshot): HTMLElement {
  const source = has_source ? sandboxLink({ id, name }) : h("span", { class: "quiet", title: `${name} has been deleted` }, name);
  source.classList.add("clip");
  return h("div", { class: "two-lines" }, source);
}

function consistencyCell({ consistency }: SnapshotInfo): HTMLElement {
  const [words, explanation] = ways[consistency];
  return h("span", { title: explanation }, words);
}

function actions(snapshot: SnapshotInfo, remove: (snapshot: SnapshotInfo) => void): HTMLElement {
  return h(
    "div",
    { class: "row-actions" },
    button({ label: "Restore", size: "small", onClick: () => openRestore(snapshot) }),
    iconButton(`Delete ${snapshot.name}`, "trash", () => remove(snapshot)),
  );
}
