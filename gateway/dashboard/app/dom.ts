/** Elements without markup: text only ever becomes text nodes, so nothing that a server sends can turn into HTML. */

export type Child = Node | string | number | null | undefined | false;
type Listener = (event: Event) => void;
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | Listener>>;

const svgNamespace = "http://www.w3.org/2000/svg";

/** An HTML element. Attributes that are false or undefined are left out; functions become listeners of `on…` events. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, attributes);
  append(element, children);
  return element;
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(svgNamespace, tag);
  apply(element, attributes);
  append(element, children);
  return element;
}

/** Puts `children` in the place of whatever the element holds. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

let lastId = 0;

/** An id that no other element has. */
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
