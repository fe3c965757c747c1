/**
 * The table of attacks at the end of a run: every test of a file `escape/TOPIC.test.ts` (from inside a sandbox) or
 * `walls/TOPIC.test.ts` (between the parts, accounts and users) is one, and passes when it was held.
 * One whose name begins with "control: " shows that the walls leave open what they should.
 */

/** What the test runner says when a test has ended. */
interface Ended {
  readonly name: string;
  readonly file?: string | undefined;
  readonly skip?: string | boolean | undefined;
}

interface Attack {
  readonly topic: string;
  readonly name: string;
  readonly outcome: string;
}

const held = "held";
const notTried = "not tried";
const control = /^control: /;

export class Attacks {
  readonly #tried: Attack[] = [];

  /** Takes a test that has ended; those of other files are no attacks. */
  note({ name, file, skip }: Ended, passed: boolean): void {
    const topic = topicOf(file);
    if (topic === undefined) return;
    // A file that could not be run at all is named by its path.
    this.#tried.push({ topic, name: name === file ? "the file itself" : name, outcome: outcomeOf(name, passed, skip) });
  }

  /** A line for each attack, by topic, and one for all; undefined when there was none. */
  table(): string | undefined {
    if (this.#tried.length === 0) return undefined;
    const widthOf = (values: readonly string[]): number => Math.max(...values.map((value) => value.length));
    const topics = widthOf(["topic", ...this.#tried.map(({ topic }) => topic)]);
    const names = widthOf(["tried", ...this.#tried.map(({ name }) => name)]);
    const line = (topic: string, name: string, outcome: string): string => `${topic.padEnd(topics)}  ${name.padEnd(names)}  ${outcome}`;
    // Files are run beside each other, so that their tests end in any order.
    const sorted = this.#tried.map((attack, index) => ({ attack, index })).sort((a, b) => compare(a.attack.topic, b.attack.topic) || a.index - b.index);
    const tried = this.#tried.filter(({ name, outcome }) => !control.test(name) && !outcome.startsWith(notTried));
    const count = tried.filter(({ outcome }) => outcome === held).length;
    return [
      line("topic", "tried", "outcome"),
      ...sorted.map(({ attack }) => line(attack.topic, attack.name, attack.outcome)),
      `attacks: ${tried.length} tried, ${count} held`,
    ].join("\n");
  }
}

function outcomeOf(name: string, passed: boolean, skip: Ended["skip"]): string {
  if (skip) return `${notTried}${typeof skip === "string" ? `: ${skip}` : ""}`;
  if (control.test(name)) return passed ? "works" : "BROKEN";
  return passed ? held : "NOT HELD";
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const topicOf = (file: string | undefined): string | undefined => /\/(?:escape|walls)\/([^/]+)\.test\.[jt]s$/.exec(file ?? "")?.[1];
