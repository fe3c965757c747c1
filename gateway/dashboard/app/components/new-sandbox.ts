/** The dialog that makes a sandbox. */
import { call } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { toast } from "../toast.ts";
import type { Sandbox } from "../types.ts";
import { button, iconButton } from "./button.ts";
import { choice, type Field, field, focusProblem } from "./field.ts";

const numeric = (min: number, max: number, value: number) => ({ type: "number", min, max, value, step: 1, inputmode: "numeric" });

interface Resource {
  readonly key: "cpus" | "memory" | "storage";
  readonly field: Field;
}

/** Asks for the sandbox's properties; `created` runs as soon as the server has begun to make it. */
export function openNewSandbox(created: () => void): void {
  const name = field({ label: "Name", optional: true, attributes: { placeholder: "Chosen for you", maxlength: 63 } });
  const image = field({
    label: "Image",
    hint: "“default” has the usual tools; any other image is pulled from its registry.",
    attributes: { value: "default" },
  });
  const resources: readonly Resource[] = [
    { key: "cpus", field: field({ label: "CPUs", unit: "CPU", attributes: numeric(1, 32, 1) }) },
    { key: "memory", field: field({ label: "Memory", unit: "MiB", attributes: numeric(128, 32_768, 512) }) },
    { key: "storage", field: field({ label: "Storage", unit: "GB", attributes: numeric(1, 1_000, 5) }) },
  ];
  const network = choice(
    "Network",
    [
      ["outbound", "Outbound"],
      ["none", "None"],
    ],
    "outbound",
  );
  const variables = variableRows();
  openDialog({
    title: "New sandbox",
    wide: true,
    body: [
      name.element,
      image.element,
      h("div", { class: "columns-3" }, ...resources.map(({ field: { element } }) => element)),
      network.element,
      variables.element,
    ],
    submit: { label: "Create sandbox" },
    onSubmit: async () => {
      for (const { field: number } of resources) checkNumber(number);
      if (!image.value.trim()) image.complain("Enter an image.");
      if (focusProblem([image, ...resources.map((resource) => resource.field)])) return false;
      const given = name.value.trim();
      const made = await call<Sandbox>("POST", "/v1/sandboxes/create", {
        body: {
          image: image.value.trim(),
          ...(given ? { name: given } : {}),
          resources: Object.fromEntries(resources.map(({ key, field: { value } }) => [key, Number(value)])),
          network: { access: network.value },
          env_vars: variables.read(),
          wait_for_ready: false,
        },
      });
      toast(`${made.name} is being made`);
      created();
      return true;
    },
  });
}

function checkNumber(number: Field): void {
  const { min, max } = number.input;
  const value = Number(number.value);
  const fits = number.value.trim() !== "" && Number.isInteger(value) && value >= Number(min) && value <= Number(max);
  number.complain(fits ? "" : `${min} to ${max}`);
}

function variableRows(): { readonly element: HTMLElement; read(): Record<string, string> } {
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
  return { element: h("fieldset", { class: "variables" }, h("legend", {}, "Environment variables"), rows, add), read };
}
