/** Creates elements without markup. Text always becomes text nodes, so nothing from the server can turn into HTML. */

export type Child = Node | string | number | null | undefined | false;
type Listener = (event: Event) => void;
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | Listener>>;

const svgNamespace = "http://www.w3.org/2000/svg";

/** Creates an HTML element. A string is its class; false and undefined attributes are omitted; functions become listeners of `on…` events. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes | string = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, typeof attributes === "string" ? { class: attributes } : attributes);
  append(element, children);
  return element;
}

/** Creates an SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(svgNamespace, tag);
  apply(element, attributes);
  append(element, children);
  return element;
}

/** Replaces the content of the element with `children`. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

let lastId = 0;

/** An id that is unique in the document. */
export function uniqueId(what: string): string {
  lastId += 1;
  return `${what}-${lastId}`;
}

function apply(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}
