/** Tables for terminals. */
import stringWidth from "string-width";

/**
 * Lines with aligned columns, by the display width of each character. Color can be added afterwards, as it has no width.
 *
 * @param leftColumns how many columns begin on the left; those after them hold numbers, which end on the right
 */
export function alignColumns(rows: readonly (readonly string[])[], leftColumns = Number.POSITIVE_INFINITY): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, stringWidth(cell));
  }
  const padded = (cell: string, column: number): string => {
    const space = " ".repeat((widths[column] ?? 0) - stringWidth(cell));
    return column < leftColumns ? cell + space : space + cell;
  };
  return rows.map((row) => row.map(padded).join("  ").trimEnd());
}
