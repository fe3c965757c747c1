/** What openapi.json says of all calls. */
import type { ErrorCode } from "../../shared/errors.ts";
import type { Json } from "./schema.ts";

export const introduction = `Requests and answers are JSON in UTF-8, except for files and streams. Fields and parameters that are not known are refused.

Every call carries an API key in the header \`x-api-key\`, or in the parameter \`api_key\` where no header can be set. Keys are made on the web page under Settings, API keys.

Every answer carries \`x-request-id\`. Every error is \`{"error":{"code","message","request_id"}}\` with a code of a closed set; the codes \`forbidden\`, \`not_found\` and \`unprocessable\` come with a \`reason\`, of a closed set too, that says what is not allowed, not there or cannot be done. A command that fails is no error: look at its \`exit_code\`.

Limits count per key. Every answer says in \`RateLimit\` what is left of the minute; 429 and 503 say in \`Retry-After\` when to come back.

Lists come in pages, newest first. Times are ISO 8601 in UTC. What belongs to another account is answered as if it were not there.`;

/** What each code means, wherever it occurs. */
export const meanings: Readonly<Record<ErrorCode, string>> = {
  invalid_request: "Something is malformed or out of bounds; the message names the field.",
  unauthorized: "No key, an unknown key, or a revoked one.",
  forbidden: "The account is suspended, or may not do this.",
  not_found: "There is no such path, sandbox, snapshot or file, or it is another account's.",
  method_not_allowed: "The path is there, but not for this method; `Allow` lists those that work.",
  conflict: "The state of the thing does not allow this now.",
  idempotency_conflict: "The `Idempotency-Key` was used for a different request.",
  payload_too_large: "The body or the file is larger than the server takes, or the answer larger than one may be.",
  unprocessable: "Well-formed, but it cannot be done: no such image, no such directory.",
  rate_limited: "Too many requests; `Retry-After` says when to come back.",
  sandbox_limit_reached: "The key has as many sandboxes as it may have.",
  internal_error: "A defect. The server's log has it under the request id.",
  unavailable: "Nobody can do it now; `Retry-After` says when to try again.",
  insufficient_storage: "The host or the sandbox is out of disk.",
};

const header = (description: string, type: string, example: unknown): Json => ({ description, schema: { type }, example });

const headers: Readonly<Record<string, Json>> = {
  "x-request-id": header("Identifies this answer in the server's logs.", "string", "req_01k9zqb7c8d9e0f1g2h3j4k5m6"),
  RateLimit: header('What is left: `"requests";r=` requests, `t=` seconds until the next one comes back.', "string", '"requests";r=58;t=59'),
  "RateLimit-Policy": header('The limit: `"requests";q=` requests in `w=` seconds.', "string", '"requests";q=60;w=60'),
  "Retry-After": header("Whole seconds to wait; never earlier than the call would be let through.", "integer", 7),
  "Idempotency-Replayed": header("`true` when an earlier call with this `Idempotency-Key` was answered in this way.", "string", "true"),
};

const parameters: Readonly<Record<string, Json>> = {
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    description:
      "The same key with the same body is carried out once: for 24 hours a repetition gets the first answer. With another body it is 409 `idempotency_conflict`.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[ -~]+$" },
    example: "4f1c9a52-7d0e-4b6f-9c55-0a3f5b1d2e77",
  },
};

export const components = { headers, parameters };

export const securitySchemes: Readonly<Record<string, Json>> = {
  apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "An API key. The preferred way." },
  apiKeyQuery: { type: "apiKey", in: "query", name: "api_key", description: "An API key, where no header can be set. Addresses end up in logs." },
  browser: { type: "apiKey", in: "cookie", name: "sandgate_session", description: "A browser that is logged in on the web page." },
  browserAccount: {
    type: "apiKey",
    in: "header",
    name: "x-sandgate-account",
    description:
      "The id of the account that a browser calls for; goes with the cookie, which all of its tabs share. Calls for another account than the one that is logged in are refused with the reason `other_account`.",
  },
  csrfToken: {
    type: "apiKey",
    in: "header",
    name: "x-csrf-token",
    description: "What a browser was told as `csrf_token`; goes with the cookie on every call that changes something.",
  },
};
