/** Options of methods: those of the call, and those that are sent. */
import type { CallOptions, MakeOptions } from "./connection.ts";

/** Copying gigabytes, or pulling an image, in milliseconds. */
export const slowTimeoutMs = 900_000;
/** For what may take as long as it likes while it goes on. */
export const untimed = Number.POSITIVE_INFINITY;

type CallPart = keyof MakeOptions;

/** What is sent, and how it is sent. */
export function split<T extends CallOptions>(options: T): [body: Omit<T, CallPart>, call: MakeOptions] {
  const { signal, timeoutMs, maxRetries, idempotencyKey, ...body } = options as T & MakeOptions;
  return [body, { signal, timeoutMs, maxRetries, idempotencyKey }];
}
