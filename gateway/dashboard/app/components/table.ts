/** Tables that keep their row elements when the contents change, so that focus and selection survive a refresh. */
import type { Pagination } from "../../../../shared/schemas/fields.ts";
import { type Child, fill, h } from "../dom.ts";
import { iconButton } from "./button.ts";

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => Child;
  /** Hidden on narrow screens. */
  readonly wide?: true;
  readonly align?: "end";
}

export interface Table<T> {
  readonly element: HTMLElement;
  show(items: readonly T[]): void;
}

export function table<T>(label: string, columns: readonly Column<T>[], keyOf: (item: T) => string, isMarked: (item: T) => boolean = () => false): Table<T> {
  const body = h("tbody");
  const heads = columns.map((column) => h("th", { scope: "col", class: classOf(column) }, column.title || h("span", "visually-hidden", "Actions")));
  const element = h("div", "table-frame", h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, ...heads)), body));
  const rows = new Map<string, { row: HTMLTableRowElement; seen: string }>();
  const show = (items: readonly T[]): void => {
    const wanted = new Set(items.map(keyOf));
    for (const [key, { row }] of rows) {
      if (wanted.has(key)) continue;
      if (row.contains(document.activeElement)) document.querySelector("h1")?.focus();
      row.remove();
      rows.delete(key);
    }
    for (const [index, item] of items.entries()) {
      const key = keyOf(item);
      const seen = JSON.stringify(item);
      const known = rows.get(key) ?? { row: h("tr"), seen: "" };
      if (known.seen !== seen) fill(known.row, ...columns.map((column) => h("td", { class: classOf(column) }, column.cell(item))));
      known.row.classList.toggle("marked", isMarked(item));
      rows.set(key, { row: known.row, seen });
      if (body.children[index] !== known.row) body.insertBefore(known.row, body.children[index] ?? null);
    }
  };
  return { element, show };
}

/** Page number and navigation; hidden when there is only one page. */
export function pager(go: (page: number) => void): { readonly element: HTMLElement; show(pagination: Pagination): void } {
  let page = 1;
  const words = h("span", { role: "status" });
  const back = iconButton("Previous page", "back", () => go(page - 1));
  const forward = iconButton("Next page", "forward", () => go(page + 1));
  const element = h("nav", { class: "pager", "aria-label": "Pages", hidden: true }, words, back, forward);
  const show = (pagination: Pagination): void => {
    page = pagination.page;
    element.hidden = pagination.total_pages <= 1;
    words.textContent = `Page ${page} of ${pagination.total_pages}`;
    back.disabled = page <= 1;
    forward.disabled = page >= pagination.total_pages;
  };
  return { element, show };
}

function classOf<T>({ wide, align }: Column<T>): string | false {
  return [wide ? "wide-only" : "", align === "end" ? "end" : ""].join(" ").trim() || false;
}
