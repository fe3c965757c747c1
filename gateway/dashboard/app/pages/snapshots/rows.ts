/** The columns of the list of snapshots. */
import type { SandboxPage } from "../../../../../shared/schemas/sandboxes.ts";
import type { SnapshotInfo } from "../../../../../shared/schemas/snapshots.ts";
import { call } from "../../api.ts";
import { timeAgo } from "../../components/bits.ts";
import { button, copyButton, iconButton } from "../../components/button.ts";
import { openRestore } from "../../components/restore.ts";
import { sandboxLink } from "../../components/snapshot-dialogs.ts";
import type { Column } from "../../components/table.ts";
import { h } from "../../dom.ts";
import { bytes, shortId } from "../../format.ts";

/** The most pages of sandboxes that are searched; with more sandboxes, some links are missing. */
const pagesMax = 3;

const ways = {
  application: ["Application", "Processes stood still while it was taken"],
  crash: ["Quick", "It was taken while processes went on"],
} as const;

export interface ShownSnapshot extends SnapshotInfo {
  /** Whether its source sandbox still exists. */
  readonly has_source: boolean;
}

export function columns(remove: (snapshot: SnapshotInfo) => void): readonly Column<ShownSnapshot>[] {
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
export async function existing(snapshots: readonly SnapshotInfo[], signal: AbortSignal): Promise<ReadonlySet<string>> {
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
