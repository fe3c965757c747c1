/** The beginning of a text that may be too long to keep. */

const encoder = new TextEncoder();

/** The longest prefix of whole characters that fits into `bytesMax` bytes of UTF-8. */
export function beginningOf(text: string, bytesMax: number): string {
  // A UTF-16 code unit takes at most three bytes of UTF-8; characters of four bytes are two units.
  if (text.length * 3 <= bytesMax) return text;
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(bytesMax)).read);
}
