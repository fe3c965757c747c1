/** What a run was asked for, as `test/bundle.mjs` has read it: `npm run test:faults -- --seed N --rounds N`. */
import { seededRandom } from "../helpers/random.ts";

const { TEST_FAULTS = '{"seed":1}' } = process.env;

/** `rounds`: how many faults are caused; each of them once when absent. */
export const plan = JSON.parse(TEST_FAULTS) as { readonly seed: number; readonly rounds?: number };

export type Random = () => number;

/** Random numbers for one part of the test, which do not depend on how fast others take theirs. */
export function randomFor(part: string): Random {
  let hash = plan.seed;
  for (const character of part) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return seededRandom(hash);
}

export const between = (random: Random, least: number, most: number): number => least + Math.floor(random() * (most - least + 1));

export const oneOf = <T>(random: Random, items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)];

export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const order = items.map((item) => ({ item, at: random() }));
  return order.sort((one, other) => one.at - other.at).map(({ item }) => item);
}
