/** The description of a schema for human readers. */

/** The schema's description, followed by its bounds in the same words as the message that refuses values outside them. */
export function wordsOf({ description, takes, takesEntry }: Readonly<Record<string, unknown>>): string {
  return [description, takes ? `Must be ${takes}.` : "", takesEntry ? `Each must be ${takesEntry}.` : ""].filter(Boolean).join(" ");
}
