/** Errors that all calls share, and errors that several operations document. */

import { ids } from "./examples.ts";
import type { CallFacts, Failures, OperationDocs } from "./operation.ts";

const always: Failures = {
  internal_error: {
    when: "A bug in the server, logged under the request id.",
    message: "an internal error occurred; the request id identifies it in the logs",
  },
};

const ofCalls: Failures = {
  unavailable: { when: "No worker is available, or the gateway is busy or shutting down.", message: "no worker has room for another sandbox" },
};

/** Of calls that are answered while a stream from the worker goes on. */
export const workerLost: Failures = {
  worker_lost: { when: "The worker was lost while the call ran; how far it got is not known.", message: "the worker was lost while the call ran" },
};

const limited: Failures = {
  rate_limited: { when: "More requests per minute than the tier allows.", message: "the limit of 60 requests a minute is reached" },
};

const ofCallers: Failures = {
  unauthorized: {
    when: "The API key is missing, unknown or revoked; for browsers, not logged in.",
    message: "Missing API key. Include it in the x-api-key header.",
  },
  forbidden: {
    when: "The account is suspended, or the browser is logged in to another account than the page belongs to.",
    message: "This account is suspended.",
    reason: "suspended",
  },
  ...limited,
};

const ofAnyone: Failures = {
  forbidden: { when: "The call comes from a page of another site.", message: "This call must come from Sandgate's own pages.", reason: "foreign_page" },
};

const ofPeople: Failures = {
  forbidden: {
    when: "Not logged in on the web page, the header `x-csrf-token` or `x-sandgate-account` is missing or wrong, or the account is suspended.",
    message: "Log in on the web page for this; an API key is not enough.",
    reason: "log_in_needed",
  },
};

const ofOperators: Failures = {
  forbidden: { when: "The account is not an operator, or is suspended.", message: "Only an operator may do this.", reason: "operators_only" },
};

const invalidField: Failures = {
  invalid_request: {
    when: "A field is missing, unknown or out of bounds, or the body is not JSON. The message names the field.",
    message: "Missing required field: image",
  },
};
const invalidQuery: Failures = {
  invalid_request: {
    when: "A parameter is unknown or out of bounds. The message names it.",
    message: "page_size must be between 1 and 100 (a whole number)",
  },
};
const unknownQuery: Failures = {
  invalid_request: { when: "A parameter or a field is unknown. The message names it.", message: "Unknown query parameter: verbose" },
};
const tooLarge: Failures = {
  payload_too_large: { when: "The body is larger than the limit (1 MiB by default).", message: "the request body must be at most 1048576 bytes" },
};

/** The errors of every call of this kind. A route's own docs may override some. */
export function commonFailures({ access, body, method, query }: CallFacts): Failures {
  const takesBody = body !== "file" && Object.keys((body.schema as { properties?: object }).properties ?? {}).length > 0;
  return {
    ...(takesBody ? invalidField : Object.keys(query.schema.properties).length > 0 ? invalidQuery : unknownQuery),
    ...(access === "anyone" ? ofAnyone : ofCallers),
    ...(access === "person" ? ofPeople : {}),
    ...(access === "operator" ? ofOperators : {}),
    ...(method !== "GET" && body !== "file" ? tooLarge : {}),
    ...always,
    ...ofCalls,
  };
}

/** Errors of routes outside the pipeline. */
export const openFailures: Failures = always;

type Kind = NonNullable<OperationDocs["of"]>;

const absent: Readonly<Record<Kind, string>> = {
  sandbox: "The account has no such sandbox.",
  snapshot: "The account has no such snapshot.",
  key: "There is no such key.",
  account: "There is no such account.",
  worker: "There is no such worker.",
  image: "None of the workers asked has such an image.",
};

/** The error of a call that names what does not exist. */
export function noSuch(kind: Kind): Failures {
  const name = kind === "key" ? "API key" : kind.charAt(0).toUpperCase() + kind.slice(1);
  return { not_found: { when: absent[kind], message: `${name} not found: ${ids[kind]}`, reason: `no_such_${kind}` } };
}

export const noImageHad: Failures = {
  unprocessable: {
    when: "The image name is invalid, the image does not exist or is not allowed, or its registry cannot be reached. The message says which.",
    message: "image not found: the registry docker.io has no docker.io/library/nothing:1 that anybody may pull",
    reason: "image_not_found",
  },
};

export const noMemory: Failures = {
  unprocessable: {
    when: "Memory is required and cannot be taken or restored. The message says why.",
    message: "memory is required, but this worker cannot take the memory of sandboxes",
    reason: "memory_unavailable",
  },
};

export const notRunning: Failures = {
  conflict: {
    when: "The sandbox is not running: it is being created or deleted, or has failed.",
    message: 'the sandbox is not running, it is in state "creating"',
  },
};
export const sandboxLimit: Failures = {
  sandbox_limit_reached: { when: "The key has as many sandboxes as its tier allows.", message: "the limit of 10 sandboxes at the same time is reached" },
};
export const noDisk: Failures = {
  insufficient_storage: { when: "The disk of the host or the storage of the sandbox is full.", message: "the host has too little free disk space" },
};
export const largeAnswer: Failures = {
  payload_too_large: { when: "The answer would exceed the size limit.", message: "the answer would have 9000000 bytes, 8387584 are possible" },
};
/** Of calls that accept an `Idempotency-Key`. */
export const repeated: Failures = {
  idempotency_conflict: { when: "The `Idempotency-Key` was used for a different request.", message: "this Idempotency-Key was used for a different request" },
};
export const guessing: Failures = {
  rate_limited: { when: "Too many attempts from this address, or for this account.", message: "too many failed authentications from this address" },
};
