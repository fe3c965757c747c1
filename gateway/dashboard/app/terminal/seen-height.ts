/**
 * How much of the window a keyboard on the screen leaves to be seen. Most browsers make the window smaller for it, as the page
 * asks in its `interactive-widget`; Safari puts it over the page and tells only by the visual viewport.
 */
export function followSeenHeight(element: HTMLElement, signal: AbortSignal): void {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = (): void => {
    // Who has zoomed in sees a part of the page on purpose.
    const isCovered = viewport.scale === 1 && viewport.height < window.innerHeight - 1;
    if (isCovered) element.style.setProperty("--seen-height", `${viewport.height}px`);
    else element.style.removeProperty("--seen-height");
    // The browser has scrolled the page to show where one types, which is in view anyway.
    if (isCovered) window.scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit, { signal });
  fit();
}
