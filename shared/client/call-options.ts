/** Options of methods: those for the call itself, and those sent to the server. */

/** Options of every call. */
export interface CallOptions {
  /** Ends the call, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Timeout of each attempt in milliseconds. */
  timeoutMs?: number | undefined;
  /** How often a call that is safe to repeat is retried; other calls never are. */
  maxRetries?: number | undefined;
}

/** Options of calls that create something. */
export interface MakeOptions extends CallOptions {
  /** Calls with the same key and body within a day create one object, however often they are sent. Generated when absent. */
  idempotencyKey?: string | undefined;
}

/** Timeout in milliseconds for copying gigabytes or pulling an image. */
export const slowTimeoutMs = 900_000;
/** Timeout of transfers, which may take any time while data flows. */
export const untimed = Number.POSITIVE_INFINITY;

type CallPart = keyof MakeOptions;

/** Separates the options that are sent from those for the call itself. */
export function split<T extends CallOptions>(options: T): [body: Omit<T, CallPart>, call: MakeOptions] {
  const { signal, timeoutMs, maxRetries, idempotencyKey, ...body } = options as T & MakeOptions;
  return [body, { signal, timeoutMs, maxRetries, idempotencyKey }];
}
