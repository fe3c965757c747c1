/** What a schema says to people. */

/** Its description, with the bounds in the words of the message that refuses what is beyond them. */
export function wordsOf({ description, takes, takesEntry }: Readonly<Record<string, unknown>>): string {
  return [description, takes ? `Must be ${takes}.` : "", takesEntry ? `Each must be ${takesEntry}.` : ""].filter(Boolean).join(" ");
}
