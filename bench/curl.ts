/** A client for many bytes: curl. One in this process would take longer than the server, and be what is measured. */
import type { Installation } from "./installation.ts";

/**
 * The command line of a call that fails unless the status is 2xx.
 *
 * @param target the path and its query @param options of curl
 */
export function curl({ stack }: Pick<Installation, "stack">, target: string, ...options: string[]): string[] {
  return ["curl", "--silent", "--show-error", "--fail", "--header", `x-api-key: ${stack.apiKey}`, ...options, `${stack.url}${target}`];
}

/** Options that send a value as JSON. */
export const withJson = (value: object): string[] => ["--header", "content-type: application/json", "--data", JSON.stringify(value)];

/** Options that send a file, without reading all of it first or asking whether to send it. */
export const withFile = (file: string): string[] => [
  ...["--request", "POST", "--header", "content-type: application/octet-stream", "--header", "expect:"],
  ...["--upload-file", file],
];
