/** Tokens that commands append to a file in their sandbox, by which can be seen how often each has run. */

/** How often the token of a command may be in the file. */
export type Times = "once" | "at most once" | "never";

const file = "/root/tokens";
/** Appended in one write, so that tokens of commands that run at the same time stay whole. */
export const appending = (token: string): string => `echo ${token} >> ${file}`;
export const readingTokens = `cat ${file} 2>/dev/null; true`;

/** What is wrong with the content of such a file. */
export function wrongTokens(text: string, tokens: ReadonlyMap<string, Times>): string[] {
  const counts = new Map<string, number>();
  for (const token of text.split("\n").filter(Boolean)) counts.set(token, (counts.get(token) ?? 0) + 1);
  const wrong: string[] = [];
  for (const [token, times] of tokens) {
    const count = counts.get(token) ?? 0;
    counts.delete(token);
    const isRight = times === "once" ? count === 1 : times === "never" ? count === 0 : count <= 1;
    if (!isRight) wrong.push(`the command ${token} was to run ${times}, and ran ${count} times`);
  }
  return [...wrong, ...[...counts.keys()].map((token) => `there is ${JSON.stringify(token.slice(0, 80))}, which no command should have written here`)];
}
