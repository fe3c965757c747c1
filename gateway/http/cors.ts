/** CORS headers for the origins in the allowlist. */
import type { Headers } from "./exchange.ts";

/** Response headers for a request from this origin. `*` in the list allows every origin. */
export function cors(allowed: readonly string[], origin: string): Headers {
  if (!origin || !(allowed.includes(origin) || allowed.includes("*"))) return { vary: "origin" };
  return {
    vary: "origin",
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, HEAD, POST, DELETE, OPTIONS",
    "access-control-allow-headers": "content-type, idempotency-key, x-api-key",
    "access-control-expose-headers": "ratelimit, ratelimit-policy, retry-after, x-request-id",
    "access-control-max-age": "600",
  };
}
