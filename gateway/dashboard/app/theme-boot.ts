/** Runs before the first paint, as a classic script, so that a chosen theme never flashes in the other colours. */
try {
  const chosen = localStorage.getItem("sandgate.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the system's preference then decides.
}
