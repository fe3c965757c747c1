/** The installation that `test/run.ts` started for all test files, as they find it in their environment. */
export interface SharedStack {
  readonly url: string;
  readonly apiKey: string;
}

export function sharedStackEnvironment({ url, apiKey }: SharedStack): Record<string, string> {
  return { TEST_STACK_URL: url, TEST_STACK_API_KEY: apiKey };
}

/** @throws {Error} when the file was not started by `npm test`. */
export function sharedStack(): SharedStack {
  const { TEST_STACK_URL: url, TEST_STACK_API_KEY: apiKey } = process.env;
  if (!url || !apiKey) throw new Error("run this file with: npm test -- <part of its name>");
  return { url, apiKey };
}
