/** The parts of openapi.json that all operations share. */
import type { ErrorCode } from "../../shared/errors.ts";
import type { Json } from "./schema.ts";

export const introduction = `Requests and answers are JSON in UTF-8, except for files and streams. Unknown fields and parameters are rejected.

Every call carries an API key in the header \`x-api-key\`, or in the query parameter \`api_key\` if the client cannot set headers. Create keys on the web page under Settings, API keys.

Every answer carries \`x-request-id\`. A call may come with the W3C Trace Context header \`traceparent\`, whose trace the server continues in its logs and spans; an invalid one is ignored. Every error is \`{"error":{"code","message","request_id"}}\` with a code from a fixed set. The codes \`forbidden\`, \`not_found\` and \`unprocessable\` also have a \`reason\` from a fixed set, which gives the exact cause. A command that fails is not an error of the call: check its \`exit_code\`.

Limits apply per key. \`RateLimit\` in every answer shows how many requests are left in the current minute; \`Retry-After\` in 429 and 503 answers says when to try again.

Lists are paginated, newest first. Times are ISO 8601 in UTC. Resources of other accounts are answered with 404, as if they did not exist.`;

/** The general meaning of each error code. */
export const meanings: Readonly<Record<ErrorCode, string>> = {
  invalid_request: "A field or parameter is malformed or out of bounds; the message names it.",
  unauthorized: "The API key is missing, unknown or revoked.",
  forbidden: "The account is suspended, or may not do this.",
  not_found: "The path, sandbox, snapshot or file does not exist, or belongs to another account.",
  method_not_allowed: "The path does not support this method; `Allow` lists the supported ones.",
  conflict: "The current state of the resource does not allow this.",
  idempotency_conflict: "The `Idempotency-Key` was used for a different request.",
  payload_too_large: "The body, the file or the answer is larger than the limit.",
  unprocessable: "The request is well-formed but cannot be carried out: for example, the image or the directory does not exist.",
  rate_limited: "Too many requests; `Retry-After` says when to try again.",
  sandbox_limit_reached: "The key has reached its limit of sandboxes.",
  internal_error: "A bug in the server. Its log has the details under the request id.",
  unavailable: "The service cannot do this at the moment; `Retry-After` says when to try again.",
  worker_lost: "The worker was lost while the call ran; it is not known how far it got.",
  insufficient_storage: "The host or the sandbox is out of disk.",
};

const header = (description: string, type: string, example: unknown): Json => ({ description, schema: { type }, example });

const headers: Readonly<Record<string, Json>> = {
  "x-request-id": header("Identifies this answer in the server's logs.", "string", "req_01k9zqb7c8d9e0f1g2h3j4k5m6"),
  RateLimit: header('What is left of the limit: `"requests";r=` requests, `t=` seconds until one more is available.', "string", '"requests";r=58;t=59'),
  "RateLimit-Policy": header('The limit: `"requests";q=` requests in `w=` seconds.', "string", '"requests";q=60;w=60'),
  "Retry-After": header("Seconds to wait, as a whole number. The limit will not reject a call made after that time.", "integer", 7),
  "Idempotency-Replayed": header("`true` when this is the stored answer to an earlier call with the same `Idempotency-Key`.", "string", "true"),
};

const parameters: Readonly<Record<string, Json>> = {
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Calls with the same key and the same body are carried out once: for 24 hours, a repeated call gets the first answer. A different body gets 409 `idempotency_conflict`.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[ -~]+$" },
    example: "4f1c9a52-7d0e-4b6f-9c55-0a3f5b1d2e77",
  },
};

export const components = { headers, parameters };

export const securitySchemes: Readonly<Record<string, Json>> = {
  apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "An API key. Preferred over `api_key`." },
  apiKeyQuery: { type: "apiKey", in: "query", name: "api_key", description: "An API key, for clients that cannot set headers. URLs tend to end up in logs." },
  browser: { type: "apiKey", in: "cookie", name: "sandgate_session", description: "The session cookie of a browser that is logged in on the web page." },
  browserAccount: {
    type: "apiKey",
    in: "header",
    name: "x-sandgate-account",
    description:
      "The id of the account that the browser page belongs to. Required with the cookie, because all tabs share it. If another account is logged in, the call is rejected with the reason `other_account`.",
  },
  csrfToken: {
    type: "apiKey",
    in: "header",
    name: "x-csrf-token",
    description: "The `csrf_token` that the browser received. Required with the cookie on every call that changes something.",
  },
};
