/** Styles that a package makes up while it runs, as sheets of the document instead of elements in it. */

/** What stands for a `<style>` element: its text is the sheet's, and the sheet goes with it. */
export function madeUpStyle(): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const element = document.createElement("span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (css: string) => sheet.replaceSync(css) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
