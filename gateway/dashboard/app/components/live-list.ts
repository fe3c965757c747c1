/** A list of all sandboxes or snapshots of the account, page by page, which is kept up to date while it is shown. */
import type { Pagination } from "../../../../shared/schemas/fields.ts";
import type { DeletedAll } from "../../../../shared/schemas/sandboxes.ts";
import { APIError, call } from "../api.ts";
import { confirmDialog } from "../dialog.ts";
import { fill, h } from "../dom.ts";
import { plural } from "../format.ts";
import { poll } from "../poll.ts";
import { toast } from "../toast.ts";
import { errorNotice, skeleton } from "./bits.ts";
import { button } from "./button.ts";
import { pager, type Table } from "./table.ts";

const pageSize = 20;

interface Options<Item, Row> {
  readonly noun: "sandbox" | "snapshot";
  readonly plural: "sandboxes" | "snapshots";
  readonly signal: AbortSignal;
  /** How long to wait before the next look, after these items were shown. */
  readonly everyMs: (items: readonly Item[]) => number;
  readonly table: Table<Row>;
  readonly rowsOf: (items: readonly Item[]) => readonly Row[] | Promise<readonly Row[]>;
  /** Shown instead of an empty list. */
  readonly nothing: () => HTMLElement;
  /** Says what is lost when all are deleted; follows their number. */
  readonly loss: string;
}

export interface LiveList {
  readonly element: HTMLElement;
  /** Says why the list is not up to date; empty while it is. */
  readonly state: HTMLElement;
  readonly deleteAll: HTMLElement;
  refresh(): void;
}

export function liveList<Item, Row>({ noun, plural: all, signal, everyMs, table, rowsOf, nothing, loss }: Options<Item, Row>): LiveList {
  let page = 1;
  let total = 0;
  let items: readonly Item[] = [];
  const element = h("div", "stack", skeleton());
  const state = h("p", { class: "quiet", role: "status" });
  const refresh = (): void => turns.now();
  const pages = pager((wanted) => {
    page = wanted;
    refresh();
  });
  const deleteAll = button({ label: "Delete all", kind: "danger-quiet", onClick: () => askToDeleteAll() });
  deleteAll.hidden = true;
  const load = async (): Promise<void> => {
    const { data, pagination } = await call<{ data: Item[]; pagination: Pagination }>("GET", `/v1/${all}/list?page=${page}&page_size=${pageSize}`, { signal });
    if (data.length === 0 && page > 1) {
      // The last page may have become empty.
      page = Math.max(1, pagination.total_pages);
      return void setTimeout(refresh);
    }
    const rows = await rowsOf(data);
    items = data;
    total = pagination.total_items;
    deleteAll.hidden = total === 0;
    state.textContent = "";
    table.show(rows);
    pages.show(pagination);
    if (total === 0) fill(element, nothing());
    else if (!table.element.isConnected) fill(element, table.element, pages.element);
  };
  const failed = (error: unknown): void => {
    const limited = error instanceof APIError && error.status === 429;
    state.textContent = limited ? `Not live at the moment: ${error.message}` : "";
    if (!table.element.isConnected && !limited) fill(element, errorNotice(error, refresh));
  };
  const turns = poll({ everyMs: () => everyMs(items), signal, work: load, failed });
  const askToDeleteAll = (): void =>
    confirmDialog(`Delete all ${all}?`, `${plural(total, noun)} ${loss}`, "Delete all", async () => {
      const { deleted_count, errors = [] } = await call<DeletedAll>("DELETE", `/v1/${all}/delete-all`);
      toast(`${plural(deleted_count, noun)} deleted${errors.length ? `, ${errors.length} could not be` : ""}`);
      refresh();
    });
  return { element, state, deleteAll, refresh };
}
