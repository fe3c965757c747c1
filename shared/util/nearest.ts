/** Which name somebody may have meant. */

/** The candidate that is the fewest edits away from a word, if these are no more than a quarter of its letters. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const found = candidates.map((candidate) => ({ candidate, edits: editsBetween(word, candidate) })).sort((a, b) => a.edits - b.edits)[0];
  return found && found.edits <= word.length / 4 ? found.candidate : undefined;
}

/** Letters to be added, removed or replaced (Levenshtein's distance). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [above, letter] of [...one].entries()) {
    const next = [above + 1];
    for (let at = 0; at < other.length; at++) {
      next.push(Math.min((next[at] ?? 0) + 1, (row[at + 1] ?? 0) + 1, (row[at] ?? 0) + (letter === other[at] ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
