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
  "worker_lost",
  "insufficient_storage",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** HTTP status of each code. Does not compile if a code has none. */
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
  worker_lost: 503,
  insufficient_storage: 507,
};

/**
 * What exactly is not allowed, not there or cannot be done, for programs. Errors with the codes `forbidden`, `not_found` and
 * `unprocessable` always have a reason, others never. A closed set as well.
 */
export const reasonsOf = {
  forbidden: [
    "suspended",
    "other_account",
    "foreign_page",
    "csrf_token",
    "log_in_needed",
    "operators_only",
    "sign_up_closed",
    "wrong_password",
    "token_scope",
    "read_only",
  ],
  not_found: [
    "no_such_path",
    "no_such_sandbox",
    "no_such_snapshot",
    "no_such_file",
    "no_such_session",
    "no_such_account",
    "no_such_key",
    "no_such_worker",
    "no_such_image",
  ],
  unprocessable: [
    "is_directory",
    "not_a_directory",
    "not_a_file",
    "exists",
    "permission_denied",
    "inaccessible",
    "bad_archive",
    "no_such_working_dir",
    "no_such_program",
    "invalid_image",
    "image_not_found",
    "image_not_allowed",
    "registry_unreachable",
    "registry_not_allowed",
    "storage_too_small",
    "not_supported",
    "memory_unavailable",
  ],
} as const satisfies Partial<Record<ErrorCode, readonly string[]>>;

/** The codes that come with a reason. */
export type ReasonedCode = keyof typeof reasonsOf;
export type ReasonOf<C extends ReasonedCode> = (typeof reasonsOf)[C][number];
export type ErrorReason = ReasonOf<ReasonedCode>;
export const errorReasons: readonly ErrorReason[] = Object.values(reasonsOf).flat();

const retryAfterDefaultS: Partial<Record<ErrorCode, number>> = {
  rate_limited: 1,
  sandbox_limit_reached: 5,
  unavailable: 2,
  worker_lost: 2,
};

/** An error as sent over NATS and, without `retry_after_s` and `refused`, in HTTP bodies. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason?: ErrorReason;
  readonly retry_after_s?: number;
  readonly refused?: true;
}

/** Messages are cut to this length, whatever they quote, so that an error always fits into an answer. */
const messageCharsMax = 8_192;

interface Details {
  readonly cause?: unknown;
  readonly retryAfterS?: number;
  readonly refused?: true;
}

/** The only class of errors whose messages reach callers. */
export class SandgateError extends Error {
  override name = "SandgateError";
  readonly code: ErrorCode;
  /** Present exactly for the codes in `reasonsOf`. */
  readonly reason: ErrorReason | undefined;
  /** Whole seconds for the `Retry-After` header; present for every code that asks clients to come back. */
  readonly retryAfterS: number | undefined;
  /** Whoever was asked has refused before it did anything, so that another may be asked. */
  readonly isRefusal: boolean;

  constructor(code: Exclude<ErrorCode, ReasonedCode>, message: string, details?: Details);
  constructor(code: "forbidden", message: string, details: Details & { readonly reason: ReasonOf<"forbidden"> });
  constructor(code: "not_found", message: string, details: Details & { readonly reason: ReasonOf<"not_found"> });
  constructor(code: "unprocessable", message: string, details: Details & { readonly reason: ReasonOf<"unprocessable"> });
  constructor(code: ErrorCode, message: string, options: Details & { readonly reason?: ErrorReason } = {}) {
    super(
      message.length > messageCharsMax ? `${message.slice(0, messageCharsMax)}…` : message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.reason = options.reason;
    this.retryAfterS = options.retryAfterS ?? retryAfterDefaultS[code];
    this.isRefusal = options.refused ?? false;
  }

  get status(): number {
    return statusOf[this.code];
  }

  toWire(): WireError {
    const reason = this.reason ? { reason: this.reason } : {};
    const refused = this.isRefusal ? { refused: true as const } : {};
    return { code: this.code, message: this.message, ...reason, ...(this.retryAfterS ? { retry_after_s: this.retryAfterS } : {}), ...refused };
  }

  static fromWire({ code, message, reason, retry_after_s, refused }: WireError): SandgateError {
    const details = { ...(reason ? { reason } : {}), ...(retry_after_s ? { retryAfterS: retry_after_s } : {}), ...(refused ? { refused } : {}) };
    // The error's constructor has already checked that the code has its reason.
    return new SandgateError(...([code, message, details] as ConstructorParameters<typeof SandgateError>));
  }

  /** Turns any thrown value into an error for the caller. Errors of other classes are defects and reveal nothing. */
  static from(error: unknown): SandgateError {
    if (error instanceof SandgateError) return error;
    // The same answer for every file that could not be written.
    if (isDiskFull(error)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause: error });
    return new SandgateError("internal_error", "an internal error occurred; the request id identifies it in the logs", { cause: error });
  }
}

const isDiskFull = (error: unknown): boolean => error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
