/**
 * The closed set of errors that a caller can see. Failures of NATS, Podman, LMDB and the operating system
 * are turned into one of these at one boundary each, the original kept in `cause`.
 */

export const errorCodes = [
  "invalid_request",
  "unauthorized",
  "forbidden",
  "not_found",
  "method_not_allowed",
  "conflict",
  "idempotency_conflict",
  "payload_too_large",
  "unprocessable",
  "rate_limited",
  "sandbox_limit_reached",
  "internal_error",
  "unavailable",
  "insufficient_storage",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** HTTP status of each code. Does not compile when a code has none. */
export const statusOf: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  idempotency_conflict: 409,
  payload_too_large: 413,
  unprocessable: 422,
  rate_limited: 429,
  sandbox_limit_reached: 429,
  internal_error: 500,
  unavailable: 503,
  insufficient_storage: 507,
};

const retryAfterDefaultS: Partial<Record<ErrorCode, number>> = {
  rate_limited: 1,
  sandbox_limit_reached: 5,
  unavailable: 2,
};

/** An error as it travels over NATS and, less `retry_after_s`, in HTTP bodies. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retry_after_s?: number;
}

/** The only error class whose message reaches a caller. */
export class SandgateError extends Error {
  override name = "SandgateError";
  readonly code: ErrorCode;
  /** Whole seconds for the `Retry-After` header; present for every code that asks the client to come back. */
  readonly retryAfterS: number | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; retryAfterS?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterS = options.retryAfterS ?? retryAfterDefaultS[code];
  }

  get status(): number {
    return statusOf[this.code];
  }

  toWire(): WireError {
    return { code: this.code, message: this.message, ...(this.retryAfterS ? { retry_after_s: this.retryAfterS } : {}) };
  }

  static fromWire(wire: WireError): SandgateError {
    return new SandgateError(wire.code, wire.message, wire.retry_after_s ? { retryAfterS: wire.retry_after_s } : {});
  }

  /** Any thrown value as an error for the caller: what is not ours is a defect and tells nothing of itself. */
  static from(error: unknown): SandgateError {
    if (error instanceof SandgateError) return error;
    return new SandgateError("internal_error", "an internal error occurred; the request id identifies it in the logs", { cause: error });
  }
}
