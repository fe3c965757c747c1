/** Form fields with a label, an input, a hint and an error message. */
import { type Attributes, type Child, h, uniqueId } from "../dom.ts";

export interface Field {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  readonly value: string;
  /** Shows what is wrong with the value; clears the error when called without words. */
  complain(words?: string): void;
}

export interface FieldOptions {
  readonly label: string;
  readonly hint?: string;
  /** Shown inside the input, after the value. */
  readonly unit?: string;
  readonly optional?: true;
  readonly attributes?: Attributes;
}

export function field({ label, hint, unit, optional, attributes = {} }: FieldOptions): Field {
  const id = uniqueId("field");
  const problem = h("p", { id: `${id}-problem`, class: "problem", "aria-live": "polite" });
  const describedBy = hint ? `${id}-hint ${id}-problem` : `${id}-problem`;
  const input = h("input", { id, class: "input", autocomplete: "off", spellcheck: "false", "aria-describedby": describedBy, ...attributes });
  const control = unit ? h("div", "with-unit", input, h("span", { class: "unit", "aria-hidden": "true" }, unit)) : input;
  const complain = (words = ""): void => {
    problem.textContent = words;
    if (words) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  };
  input.addEventListener("input", () => complain());
  const name = h("label", { for: id }, label, optional ? h("span", "optional", "optional") : null, unit ? hidden(` in ${unit}`) : null);
  const element = h("div", "field", name, control, hint ? h("p", { id: `${id}-hint`, class: "hint" }, hint) : null, problem);
  return {
    element,
    input,
    complain,
    get value() {
      return input.value;
    },
  };
}

/** A choice between a few options, shown as connected buttons and built from radio buttons. */
export function choice<T extends string>(
  label: string,
  options: readonly (readonly [value: T, words: Child, name?: string])[],
  chosen: T,
  onChange: (value: T) => void = () => {},
): { readonly element: HTMLElement; readonly value: T } {
  const name = uniqueId("choice");
  let value = chosen;
  const buttons = options.map(([option, words, spoken]) => {
    const input = h("input", { type: "radio", name, value: option, "aria-label": spoken ?? false });
    input.checked = option === chosen;
    input.addEventListener("change", () => {
      value = option;
      onChange(option);
    });
    return h("label", { class: "choice-option", title: spoken ?? false }, input, h("span", {}, words));
  });
  const element = h("fieldset", "choice", h("legend", {}, label), h("div", "choice-options", ...buttons));
  return {
    element,
    get value() {
      return value;
    },
  };
}

/** A choice between options that each need a line of explanation. */
export function explainedChoice<T extends string>(
  label: string,
  options: readonly (readonly [value: T, words: string, explanation: string])[],
  chosen: T,
): { readonly element: HTMLElement; readonly value: T } {
  const name = uniqueId("choice");
  let value = chosen;
  const lines = options.map(([option, words, explanation]) => {
    const id = uniqueId("option");
    const input = h("input", { id, type: "radio", name, value: option, "aria-describedby": `${id}-hint` });
    input.checked = option === chosen;
    input.addEventListener("change", () => {
      value = option;
    });
    return h("div", "option", input, h("label", { for: id }, words), h("p", { id: `${id}-hint`, class: "hint" }, explanation));
  });
  const element = h("fieldset", "explained", h("legend", {}, label), h("div", "options", ...lines));
  return {
    element,
    get value() {
      return value;
    },
  };
}

export function checkbox(label: string): { readonly element: HTMLElement; readonly input: HTMLInputElement } {
  const input = h("input", { type: "checkbox" });
  return { element: h("label", "checkbox", input, h("span", {}, label)), input };
}

/** Focuses the first field with an error. Returns whether there was one. */
export function focusProblem(fields: readonly Field[]): boolean {
  const wrong = fields.find(({ input }) => input.getAttribute("aria-invalid") === "true");
  wrong?.input.focus();
  return wrong !== undefined;
}

export const hidden = (words: string): HTMLElement => h("span", "visually-hidden", words);
