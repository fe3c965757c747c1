/** The installation that `test/run.ts` started for all test files, as they find it in their environment. */
export interface SharedStack {
  readonly url: string;
  readonly apiKey: string;
  readonly natsUrl: string;
}

export function sharedStackEnvironment({ url, apiKey, natsUrl }: SharedStack): Record<string, string> {
  return { TEST_STACK_URL: url, TEST_STACK_API_KEY: apiKey, TEST_STACK_NATS_URL: natsUrl };
}

/** @throws {Error} when the file was not started by `npm test`. */
export function sharedStack(): SharedStack {
  const { TEST_STACK_URL: url, TEST_STACK_API_KEY: apiKey, TEST_STACK_NATS_URL: natsUrl } = process.env;
  if (!url || !apiKey || !natsUrl) throw new Error("run this file with: npm test -- <part of its name>");
  return { url, apiKey, natsUrl };
}
