/** Snapshots, where the server has them. */
import { call } from "../api.ts";
import { emptyState, errorNotice, pageHeader, pill, skeleton, timeAgo } from "../components/bits.ts";
import { pager, table } from "../components/table.ts";
import { fill, h } from "../dom.ts";
import { bytes, shortId } from "../format.ts";
import type { View, Visit } from "../router.ts";
import { hasFeature } from "../session.ts";
import type { PageOf, Snapshot } from "../types.ts";

export function snapshotsPage({ signal }: Visit): View {
  const place = h("div", {});
  const element = h("div", { class: "page" }, pageHeader("Snapshots", "Sandboxes as they were at one moment, to start others from."), place);
  if (hasFeature("snapshots")) showList(place, signal);
  else fill(place, emptyState("snapshots", "Snapshots are not available on this server yet.", "Sandboxes keep their files until they are deleted."));
  return { title: "Snapshots", element };
}

function showList(place: HTMLElement, signal: AbortSignal): void {
  const list = table<Snapshot>(
    "Snapshots",
    [
      {
        title: "Name",
        cell: ({ name, id }) => h("div", { class: "two-lines" }, h("span", { class: "strong clip" }, name), h("code", { title: id }, shortId(id))),
      },
      { title: "Status", cell: ({ status }) => pill(status) },
      { title: "From", cell: ({ source_sandbox_name }) => source_sandbox_name, wide: true },
      { title: "Size", cell: ({ size_bytes }) => bytes(size_bytes), wide: true, align: "end" },
      { title: "Created", cell: ({ created_at }) => timeAgo(created_at), align: "end" },
    ],
    ({ id }) => id,
  );
  const pages = pager((page) => void load(page));
  const load = async (page: number): Promise<void> => {
    try {
      const { data, pagination } = await call<PageOf<Snapshot>>("GET", `/v1/snapshots/list?page=${page}&page_size=20`, { signal });
      list.show(data);
      pages.show(pagination);
      if (data.length) fill(place, list.element, pages.element);
      else fill(place, emptyState("snapshots", "No snapshots yet", "Take one from a sandbox's page."));
    } catch (error) {
      if (!signal.aborted)
        fill(
          place,
          errorNotice(error, () => void load(page)),
        );
    }
  };
  fill(place, skeleton());
  void load(1);
}
