/** The beginning of a text that may be too long to be kept whole. */

const encoder = new TextEncoder();

/** As many whole characters as fit into so many bytes of UTF-8. */
export function beginningOf(text: string, bytesMax: number): string {
  // No character of a string takes more than three bytes; those that take four are two of them.
  if (text.length * 3 <= bytesMax) return text;
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(bytesMax)).read);
}
