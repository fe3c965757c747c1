/** Environment variables: rows of a name and a value. */
import { h } from "../dom.ts";
import { button, iconButton } from "./button.ts";

export interface Variables {
  readonly element: HTMLElement;
  read(): Record<string, string>;
}

export function variableRows(hint?: string): Variables {
  const rows = h("div", { class: "variable-rows" });
  const add = button({ label: "Add variable", icon: "plus", size: "small", onClick: () => addRow() });
  const addRow = (): void => {
    const attributes = { class: "input mono", autocomplete: "off", spellcheck: "false" };
    const name = h("input", { ...attributes, "aria-label": "Variable name", placeholder: "NAME", "data-part": "name" });
    const value = h("input", { ...attributes, "aria-label": "Variable value", placeholder: "value", "data-part": "value" });
    const remove = iconButton("Remove variable", "close", () => {
      row.remove();
      add.focus();
    });
    const row = h("div", { class: "variable-row" }, name, value, remove);
    rows.append(row);
    name.focus();
  };
  const read = (): Record<string, string> => {
    const part = (row: Element, which: string): string => row.querySelector<HTMLInputElement>(`[data-part=${which}]`)?.value ?? "";
    const pairs = [...rows.children].map((row) => [part(row, "name").trim(), part(row, "value")] as const);
    return Object.fromEntries(pairs.filter(([name, value]) => name || value));
  };
  return {
    element: h("fieldset", { class: "variables" }, h("legend", {}, "Environment variables"), hint ? h("p", { class: "hint" }, hint) : null, rows, add),
    read,
  };
}
