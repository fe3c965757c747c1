/** Runs before the first paint, as a classic script, so that the page never flashes in the wrong theme. */
try {
  const chosen = localStorage.getItem("sandgate.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be blocked; then the system preference applies.
}
