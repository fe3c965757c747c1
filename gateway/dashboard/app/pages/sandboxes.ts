/** The live list of the account's sandboxes. */
import type { SandboxInfo, SandboxPage } from "../../../../shared/schemas/sandboxes.ts";
import { APIError, call } from "../api.ts";
import { emptyState, errorNotice, pageHeader, pill, skeleton, timeAgo } from "../components/bits.ts";
import { button, copyButton, iconButton } from "../components/button.ts";
import { confirmDelete, openNewSandbox } from "../components/sandbox-dialogs.ts";
import { type Column, pager, table } from "../components/table.ts";
import { confirmDialog } from "../dialog.ts";
import { fill, h } from "../dom.ts";
import { mebibytes, plural, shortId } from "../format.ts";
import { poll } from "../poll.ts";
import type { View, Visit } from "../router.ts";
import { toast } from "../toast.ts";

const everyMs = 5_000;
/** Polling interval while a sandbox is being created or deleted. */
const soonMs = 1_500;
const pageSize = 20;

export function sandboxesPage({ signal, query }: Visit): View {
  let page = 1;
  let soon = false;
  const place = h("div", { class: "stack" }, skeleton());
  const pausedWords = h("p", { class: "quiet", role: "status" });
  const create = () => openNewSandbox(refresh);
  const list = table("Sandboxes", columns(askToDelete), ({ id }: SandboxInfo) => id);
  const pages = pager((wanted) => {
    page = wanted;
    refresh();
  });
  const newButton = button({ label: "New sandbox", icon: "plus", kind: "primary", onClick: create });
  const deleteAll = button({ label: "Delete all", kind: "danger-quiet", onClick: () => askToDeleteAll() });
  deleteAll.hidden = true;
  let total = 0;
  const show = ({ data, pagination }: SandboxPage): void => {
    total = pagination.total_items;
    soon = data.some(({ status }) => status === "creating" || status === "deleting");
    deleteAll.hidden = total === 0;
    pausedWords.textContent = "";
    if (total === 0) return fill(place, nothingYet(create));
    list.show(data);
    pages.show(pagination);
    if (!list.element.isConnected) fill(place, list.element, pages.element);
  };
  const turns = poll({
    everyMs: () => (soon ? soonMs : everyMs),
    signal,
    work: async () => {
      const answer = await call<SandboxPage>("GET", `/v1/sandboxes/list?page=${page}&page_size=${pageSize}`, { signal });
      // The last page may have become empty.
      if (answer.data.length || page === 1) return show(answer);
      page = Math.max(1, answer.pagination.total_pages);
      setTimeout(refresh);
    },
    failed: (error) => {
      const limited = error instanceof APIError && error.status === 429;
      pausedWords.textContent = limited ? `Not live at the moment: ${error.message}` : "";
      if (!list.element.isConnected && !limited) fill(place, errorNotice(error, refresh));
    },
  });
  function refresh(): void {
    turns.now();
  }
  function askToDelete(sandbox: SandboxInfo): void {
    confirmDelete(sandbox, refresh);
  }
  function askToDeleteAll(): void {
    const words = `${plural(total, "sandbox")} and all files in them will be gone. Running commands end.`;
    confirmDialog("Delete all sandboxes?", words, "Delete all", async () => {
      const { deleted_count, errors = [] } = await call<{ deleted_count: number; errors?: unknown[] }>("DELETE", "/v1/sandboxes/delete-all");
      toast(`${plural(deleted_count, "sandbox")} deleted${errors.length ? `, ${errors.length} could not be` : ""}`);
      refresh();
    });
  }
  if (query.has("new")) {
    history.replaceState(null, "", "/sandboxes");
    queueMicrotask(create);
  }
  const header = pageHeader("Sandboxes", pausedWords, deleteAll, newButton);
  return { title: "Sandboxes", element: h("div", { class: "page" }, header, place) };
}

function nothingYet(create: () => void): HTMLElement {
  const words = "A sandbox is a Linux of its own to run code in: made in a moment, gone when you delete it.";
  return emptyState("sandboxes", "No sandboxes", words, button({ label: "New sandbox", icon: "plus", kind: "primary", onClick: create }));
}

function columns(askToDelete: (sandbox: SandboxInfo) => void): readonly Column<SandboxInfo>[] {
  return [
    { title: "Name", cell: nameCell },
    { title: "Status", cell: ({ status, error }) => h("span", { title: error ?? false }, pill(status)) },
    { title: "Image", cell: ({ image }) => h("span", { class: "clip", title: image }, imageName(image)), wide: true },
    { title: "Size", cell: (sandbox) => h("span", { class: "number" }, sizeWords(sandbox)), wide: true },
    { title: "Network", cell: ({ network }) => networkWords(network.access), wide: true },
    { title: "Created", cell: ({ created_at }) => timeAgo(created_at), align: "end" },
    { title: "", align: "end", cell: (sandbox) => iconButton(`Delete ${sandbox.name}`, "trash", () => askToDelete(sandbox)) },
  ];
}

function nameCell({ id, name }: SandboxInfo): HTMLElement {
  const path = `/sandboxes/${encodeURIComponent(id)}`;
  const short = h(
    "span",
    { class: "id" },
    h("code", { title: id }, shortId(id)),
    copyButton(() => id, "Copy id"),
  );
  return h("div", { class: "two-lines" }, h("a", { class: "strong clip", href: path }, name), short);
}

/** The image's name, shortened for the images of this installation; the full name is in the tooltip. */
export const imageName = (image: string): string => image.replace(/^localhost\/sandgate\/(\w+):latest$/, "$1");

export const networkWords = (access: string): string => (access === "none" ? "None" : "Outbound");

export function sizeWords({ cpu, memory, storage }: Pick<SandboxInfo, "cpu" | "memory" | "storage">): string {
  return `${cpu} CPU · ${mebibytes(memory)} · ${storage} GB`;
}
