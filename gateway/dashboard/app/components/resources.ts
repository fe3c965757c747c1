/** Form fields of sandboxes: how many, their CPUs, memory and storage, and their environment variables. */
import { h } from "../dom.ts";
import { button, iconButton } from "./button.ts";
import { type Field, field } from "./field.ts";

const kinds = {
  count: { label: "Copies", unit: "", min: 1, max: 100 },
  cpus: { label: "CPUs", unit: "CPU", min: 1, max: 32 },
  memory: { label: "Memory", unit: "MiB", min: 128, max: 32_768 },
  storage: { label: "Storage", unit: "GB", min: 1, max: 1_000 },
} as const;

type Kind = keyof typeof kinds;

interface ResourceFields {
  readonly element: HTMLElement;
  readonly fields: readonly Field[];
  /** Shows an error on every field whose value is not a number in its range. */
  check(): void;
  read(): Partial<Record<Kind, number>>;
}

/** Fields for these resources with these initial values. With `emptyWords`, fields may stay empty, and the words say what that means. */
export function resourceFields(given: { readonly [kind in Kind]?: number | "" }, emptyWords = ""): ResourceFields {
  const all = (Object.entries(given) as [Kind, number | ""][]).map(([kind, value]) => ({ kind, field: numberField(kind, value, emptyWords) }));
  return {
    element: h("div", `columns-${all.length}${emptyWords ? " roomy" : ""}`, ...all.map(({ field: { element } }) => element)),
    fields: all.map(({ field: number }) => number),
    check: () => {
      for (const { field: number } of all) checkNumber(number, emptyWords !== "");
    },
    read: () => Object.fromEntries(all.filter(({ field: { value } }) => value.trim() !== "").map(({ kind, field: { value } }) => [kind, Number(value)])),
  };
}

/** `emptyWords` take the room of the unit, which then moves into the label. */
function numberField(kind: Kind, value: number | "", emptyWords: string): Field {
  const { label, unit, min, max } = kinds[kind];
  const attributes = { type: "number", min, max, value, step: 1, inputmode: "numeric", placeholder: emptyWords || undefined };
  if (!emptyWords) return field({ label, unit, attributes });
  return field({ label: kind === "cpus" ? label : `${label} (${unit})`, attributes });
}

function checkNumber({ input, value: text, complain }: Field, mayBeEmpty: boolean): void {
  const { min, max, validity } = input;
  const value = Number(text);
  // A number input that contains something else reports an empty value.
  if (mayBeEmpty && text.trim() === "" && !validity.badInput) return complain();
  const fits = text.trim() !== "" && Number.isInteger(value) && value >= Number(min) && value <= Number(max);
  complain(fits ? "" : `${min} to ${max}`);
}

export interface Variables {
  readonly element: HTMLElement;
  read(): Record<string, string>;
}

export function variableRows(hint?: string): Variables {
  const rows = h("div", "variable-rows");
  const add = button({ label: "Add variable", icon: "plus", size: "small", onClick: () => addRow() });
  const addRow = (): void => {
    const attributes = { class: "input mono", autocomplete: "off", spellcheck: "false" };
    const name = h("input", { ...attributes, "aria-label": "Variable name", placeholder: "NAME", "data-part": "name" });
    const value = h("input", { ...attributes, "aria-label": "Variable value", placeholder: "value", "data-part": "value" });
    const remove = iconButton("Remove variable", "close", () => {
      row.remove();
      add.focus();
    });
    const row = h("div", "variable-row", name, value, remove);
    rows.append(row);
    name.focus();
  };
  const read = (): Record<string, string> => {
    const part = (row: Element, which: string): string => row.querySelector<HTMLInputElement>(`[data-part=${which}]`)?.value ?? "";
    const pairs = [...rows.children].map((row) => [part(row, "name").trim(), part(row, "value")] as const);
    return Object.fromEntries(pairs.filter(([name, value]) => name || value));
  };
  return {
    element: h("fieldset", "variables", h("legend", {}, "Environment variables"), hint ? h("p", "hint", hint) : null, rows, add),
    read,
  };
}
