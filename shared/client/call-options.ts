/** Options of methods: those of the call, and those that are sent. */

/** What every call takes beside what it is about. */
export interface CallOptions {
  /** Ends the call; what it throws then is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that one try may take. */
  timeoutMs?: number | undefined;
  /** How often a call that can be repeated is sent again; other calls never are. */
  maxRetries?: number | undefined;
}

/** What calls that make something take. */
export interface MakeOptions extends CallOptions {
  /** The same key and body within a day make one thing, however often they are sent. Made up when absent. */
  idempotencyKey?: string | undefined;
}

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
