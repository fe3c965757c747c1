/** The live list of the account's sandboxes. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import { emptyState, idOf, pageHeader, pill, timeAgo } from "../components/bits.ts";
import { button, iconButton } from "../components/button.ts";
import { liveList } from "../components/live-list.ts";
import { confirmDelete, openNewSandbox } from "../components/sandbox-dialogs.ts";
import { type Column, table } from "../components/table.ts";
import { h } from "../dom.ts";
import { mebibytes, shortId } from "../format.ts";
import type { View, Visit } from "../router.ts";

const everyMs = 5_000;
/** Polling interval while a sandbox is being created or deleted. */
const soonMs = 1_500;

export function sandboxesPage({ signal, query }: Visit): View {
  const create = () => openNewSandbox(list.refresh);
  const list = liveList<SandboxInfo, SandboxInfo>({
    ...{ noun: "sandbox", plural: "sandboxes", signal },
    everyMs: (shown) => (shown.some(({ status }) => status === "creating" || status === "moving" || status === "deleting") ? soonMs : everyMs),
    table: table(
      "Sandboxes",
      columns((sandbox) => confirmDelete(sandbox, list.refresh)),
      ({ id }) => id,
    ),
    rowsOf: (shown) => shown,
    nothing: () => nothingYet(create),
    loss: "and all files in them will be gone. Running commands end.",
  });
  if (query.has("new")) {
    history.replaceState(null, "", "/sandboxes");
    queueMicrotask(create);
  }
  const newButton = button({ label: "New sandbox", icon: "plus", kind: "primary", onClick: create });
  const header = pageHeader("Sandboxes", list.state, list.deleteAll, newButton);
  return { title: "Sandboxes", element: h("div", "page", header, list.element) };
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
    { title: "Size", cell: (sandbox) => h("span", "number", sizeWords(sandbox)), wide: true },
    { title: "Network", cell: ({ network }) => networkWords(network.access), wide: true },
    { title: "Created", cell: ({ created_at }) => timeAgo(created_at), align: "end" },
    { title: "", align: "end", cell: (sandbox) => iconButton(`Delete ${sandbox.name}`, "trash", () => askToDelete(sandbox)) },
  ];
}

function nameCell({ id, name }: SandboxInfo): HTMLElement {
  const path = `/sandboxes/${encodeURIComponent(id)}`;
  return h("div", "two-lines", h("a", { class: "strong clip", href: path }, name), idOf(id, shortId(id)));
}

/** The image's name, shortened for the images of this installation; the full name is in the tooltip. */
export const imageName = (image: string): string => image.replace(/^localhost\/sandgate\/(\w+):latest$/, "$1");

export const networkWords = (access: string): string => (access === "none" ? "None" : "Outbound");

export function sizeWords({ cpu, memory, storage }: Pick<SandboxInfo, "cpu" | "memory" | "storage">): string {
  return `${cpu} CPU · ${mebibytes(memory)} · ${storage} GB`;
}
