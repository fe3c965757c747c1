/**
 * Tracks the height that an on-screen keyboard leaves visible. Most browsers shrink the window for the keyboard, as the page
 * requests with `interactive-widget`; Safari covers the page instead, which shows only in the visual viewport.
 */
export function followSeenHeight(element: HTMLElement, signal: AbortSignal): void {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = (): void => {
    // After zooming in, the user sees only a part of the page on purpose.
    const isCovered = viewport.scale === 1 && viewport.height < window.innerHeight - 1;
    if (isCovered) element.style.setProperty("--seen-height", `${viewport.height}px`);
    else element.style.removeProperty("--seen-height");
    // The browser has scrolled the page to show the input, which is visible anyway.
    if (isCovered) window.scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit, { signal });
  fit();
}
