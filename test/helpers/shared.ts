import type { PartName } from "../../systemd/base/instance.ts";
import type { Stack } from "./stack.ts";

/** What test files need that use an installation from outside, wherever it runs. */
export interface ReachedStack {
  readonly url: string;
  readonly apiKey: string;
  readonly natsUrl: string;
}

/** The installation that `test/run.ts` started for all test files, as they find it in their environment. */
export interface SharedStack extends ReachedStack {
  readonly dataDir: string;
  /** The process ids of its parts. */
  readonly pids: Readonly<Record<PartName, number>>;
}

export function sharedStackEnvironment({ url, apiKey, natsUrl, dataDir, worker, gateway, nats }: Stack): Record<string, string> {
  const stack: SharedStack = { url, apiKey, natsUrl, dataDir, pids: { worker: worker.pid, gateway: gateway.pid, nats: nats.pid } };
  return reachedStackEnvironment(stack);
}

/** For test files that need no more than that. */
export const reachedStackEnvironment = (stack: ReachedStack): Record<string, string> => ({ TEST_STACK: JSON.stringify(stack) });

/** @throws {Error} when the file was not started by `npm test`. */
export function sharedStack(): SharedStack {
  const { TEST_STACK: text } = process.env;
  if (!text) throw new Error("run this file with: npm test -- <part of its name>");
  return JSON.parse(text) as SharedStack;
}
