/** Three significant figures, which is already more than a second run would reproduce. */
export function precise(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
}
