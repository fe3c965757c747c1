/** The errors of the client. An aborted call throws the reason of its signal instead, as `fetch` does. */
import { type ErrorCode, type ErrorReason, statusOf } from "../errors.ts";

/** Any failure of the client; the underlying error is in `cause`. */
export class SandgateError extends Error {
  override name = "SandgateError";
}

/** What is known about the answer. */
type AnswerParts = Partial<Pick<APIError, "status" | "code" | "reason" | "headers" | "requestId">>;

/** A failed call. */
export class APIError extends SandgateError {
  override name = "APIError";
  /** The HTTP status; undefined if there was no answer. */
  readonly status: number | undefined;
  /** The API's own code, such as `not_found`. */
  readonly code: string | undefined;
  /** What exactly is wrong, such as `no_such_file`. Present with the codes `forbidden`, `not_found` and `unprocessable`. */
  readonly reason: ErrorReason | undefined;
  readonly headers: Headers | undefined;
  /** Identifies the call in the server's logs. */
  readonly requestId: string | undefined;

  constructor(message: string, { status, code, reason, headers, requestId }: AnswerParts = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.reason = reason;
    this.headers = headers;
    this.requestId = requestId;
  }

  /** How many milliseconds the server asks to wait before the next attempt. */
  get retryAfterMs(): number | undefined {
    const text = this.headers?.get("retry-after");
    if (!text) return undefined;
    const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
    return Number.isNaN(ms) ? undefined : Math.max(0, ms);
  }
}

/** 400: the request is malformed or out of bounds; the message names the field. */
export class BadRequestError extends APIError {
  override name = "BadRequestError";
}
/** 401: the API key is missing, unknown or revoked. */
export class AuthenticationError extends APIError {
  override name = "AuthenticationError";
}
/** 403: the account is suspended, or it may not do this; `reason` tells which. */
export class PermissionDeniedError extends APIError {
  override name = "PermissionDeniedError";
}
/** 404: the sandbox, snapshot or file does not exist. */
export class NotFoundError extends APIError {
  override name = "NotFoundError";
}
/** 409: the state of the resource does not allow this. */
export class ConflictError extends APIError {
  override name = "ConflictError";
}
/** 422: a well-formed request that cannot be carried out, for example because the image does not exist. */
export class UnprocessableEntityError extends APIError {
  override name = "UnprocessableEntityError";
}
/** 429: too many requests or sandboxes; see `retryAfterMs`. */
export class RateLimitError extends APIError {
  override name = "RateLimitError";
}
/** 500 and above: the server failed. */
export class InternalServerError extends APIError {
  override name = "InternalServerError";
}
/** There was no complete answer, so it is unknown whether the call was carried out. */
export class APIConnectionError extends APIError {
  override name = "APIConnectionError";
}
/** The answer took longer than `timeoutMs`. */
export class APIConnectionTimeoutError extends APIConnectionError {
  override name = "APIConnectionTimeoutError";
}

const classes: Readonly<Record<number, typeof APIError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  422: UnprocessableEntityError,
  429: RateLimitError,
};

function classOf(status: number): typeof APIError {
  return status >= 500 ? InternalServerError : (classes[status] ?? APIError);
}

/** The error for an answer with an error status. @param text the body of the answer */
export function errorOfAnswer(status: number, headers: Headers, text: string): APIError {
  const { code, reason, message, request_id } = envelope(text);
  const requestId = headers.get("x-request-id") ?? request_id;
  return new (classOf(status))(message ?? `the server answered with status ${status}`, { status, code, reason, headers, requestId });
}

interface StreamError {
  readonly message: string;
  readonly code?: string | undefined;
  readonly reason?: ErrorReason | undefined;
  readonly request_id?: string | undefined;
}

/** The error that ends a stream after a successful start, or is one part of a successful answer. Its status is that of its code. */
export function errorOfStream({ message, code, reason, request_id }: StreamError, headers?: Headers): APIError {
  const status = code === undefined ? undefined : (statusOf as Readonly<Record<string, number>>)[code satisfies ErrorCode | string];
  return new (classOf(status ?? 500))(message, { status: status ?? 500, code, reason, headers, requestId: headers?.get("x-request-id") ?? request_id });
}

function envelope(text: string): { code?: string; reason?: ErrorReason; message?: string; request_id?: string } {
  try {
    return (JSON.parse(text) as { error?: object } | null)?.error ?? {};
  } catch {
    return {};
  }
}
