/** The list of the account's snapshots, if the server supports them. */
import type { SnapshotInfo, SnapshotPage } from "../../../../shared/schemas/snapshots.ts";
import { APIError, call } from "../api.ts";
import { emptyState, errorNotice, pageHeader, skeleton } from "../components/bits.ts";
import { button, linkButton } from "../components/button.ts";
import { pager, table } from "../components/table.ts";
import { confirmDialog } from "../dialog.ts";
import { fill, h } from "../dom.ts";
import { plural } from "../format.ts";
import { poll } from "../poll.ts";
import type { View, Visit } from "../router.ts";
import { hasFeature } from "../session.ts";
import { toast } from "../toast.ts";
import { columns, existing, type ShownSnapshot } from "./snapshots/rows.ts";

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
