/** The list of the account's snapshots, if the server supports them. */

import type { SandboxPage } from "../../../../shared/schemas/sandboxes.ts";
import type { SnapshotInfo } from "../../../../shared/schemas/snapshots.ts";
import { call } from "../api.ts";
import { emptyState, idOf, pageHeader, timeAgo } from "../components/bits.ts";
import { button, iconButton, linkButton } from "../components/button.ts";
import { hidden } from "../components/field.ts";
import { liveList } from "../components/live-list.ts";
import { openRestore, sandboxLink } from "../components/snapshot-dialogs.ts";
import { type Column, table } from "../components/table.ts";
import { confirmDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { bytes, shortId } from "../format.ts";
import type { View, Visit } from "../router.ts";
import { hasFeature } from "../session.ts";
import { toast } from "../toast.ts";

const everyMs = 10_000;
const words = "Files of sandboxes as they were at one moment, to start others from.";

export function snapshotsPage(visit: Visit): View {
  if (hasFeature("snapshots")) return { title: "Snapshots", element: listOf(visit) };
  const none = emptyState("snapshots", "Snapshots are not available on this server yet.", "Sandboxes keep their files until they are deleted.");
  return { title: "Snapshots", element: h("div", "page", pageHeader("Snapshots", words), none) };
}

function listOf({ signal, query }: Visit): HTMLElement {
  let sources: ReadonlySet<string> = new Set();
  const asked = query.get("show");
  const list = liveList<SnapshotInfo, ShownSnapshot>({
    ...{ noun: "snapshot", plural: "snapshots", signal },
    everyMs: () => everyMs,
    table: table(
      "Snapshots",
      columns((snapshot) => confirmDelete(snapshot, list.refresh)),
      ({ id }) => id,
      ({ id }) => id === asked,
    ),
    rowsOf: async (shown) => {
      // The list is useful even without links.
      sources = await existing(shown, signal).catch(() => sources);
      return shown.map((snapshot) => ({ ...snapshot, has_source: sources.has(snapshot.source_sandbox_id) }));
    },
    nothing: nothingYet,
    loss: "cannot be restored any more. Sandboxes that were made from them live on.",
  });
  return h("div", "page", pageHeader("Snapshots", h("span", {}, words, list.state), list.deleteAll), list.element);
}

function confirmDelete({ id, name }: SnapshotInfo, then: () => void): void {
  const asks = h("span", {}, h("strong", {}, name), " cannot be restored any more. Sandboxes that were made from it live on.");
  confirmDialog("Delete this snapshot?", asks, "Delete snapshot", async () => {
    await call("DELETE", `/v1/snapshots/${encodeURIComponent(id)}`);
    toast(`${name} is deleted`);
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
    { title: "Memory", cell: memoryCell, wide: true },
    { title: "Size", cell: sizeCell, wide: true, align: "end" },
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
function nameCell({ id, name, size_bytes, consistency, memory }: SnapshotInfo): HTMLElement {
  const narrow = h("span", "quiet narrow-only", `${bytes(size_bytes)} · ${ways[consistency][0]}${memory ? " · Memory" : ""}`);
  return h("div", "two-lines names", h("span", { class: "strong clip", title: name }, name), h("div", "wide-only", idOf(id, shortId(id))), narrow);
}

function sourceCell({ source_sandbox_id: id, source_sandbox_name: name, has_source }: ShownSnapshot): HTMLElement {
  const source = has_source ? sandboxLink({ id, name }) : h("span", { class: "quiet", title: `${name} has been deleted` }, name);
  source.classList.add("clip");
  return h("div", "two-lines", source);
}

/** The size of the files, and below it how much disk space would come back. */
function sizeCell({ size_bytes, exclusive_bytes }: SnapshotInfo): HTMLElement {
  const size = h("span", "number", bytes(size_bytes));
  if (exclusive_bytes === null) return size;
  const explanation = "Disk space that nothing else uses: deleting the snapshot frees it";
  return h("div", "two-lines", size, h("span", { class: "quiet number", title: explanation }, `${bytes(exclusive_bytes)} alone`));
}

function consistencyCell({ consistency }: SnapshotInfo): HTMLElement {
  const [words, explanation] = ways[consistency];
  return h("span", { title: explanation }, words);
}

function memoryCell({ memory, memory_reason }: SnapshotInfo): HTMLElement {
  if (memory) return h("span", { title: "Its processes continue in a sandbox restored from it" }, "Yes");
  const reason = memory_reason ?? "Only files were asked for";
  return h("span", { title: reason }, "No", hidden(`: ${reason}`));
}

function actions(snapshot: SnapshotInfo, remove: (snapshot: SnapshotInfo) => void): HTMLElement {
  return h(
    "div",
    "row-actions",
    button({ label: "Restore", size: "small", onClick: () => openRestore(snapshot) }),
    iconButton(`Delete ${snapshot.name}`, "trash", () => remove(snapshot)),
  );
}
