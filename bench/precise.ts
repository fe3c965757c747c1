/** Three significant figures, which is already more than a second run would reproduce. Empty for what was not measured. */
export function precise(value: number): string {
  if (Number.isNaN(value)) return "";
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
}
