/** Parses query strings into objects, with numbers where the schema asks for them. */
import type { TObject } from "typebox";
import { SandgateError } from "../../shared/errors.ts";

/** Accepted on every call in place of the key header. Skipped here: authentication has already read it. */
const keyParameter = "api_key";

/**
 * A value that should be a number but is not stays a string, so that validation can report it.
 *
 * @throws {SandgateError} `invalid_request` for a parameter that is unknown or repeated.
 */
export function parseQuery(schema: TObject, query: string): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  if (query === "") return values;
  const seen = new Set<string>();
  for (const [name, text] of new URLSearchParams(query)) {
    if (seen.has(name)) throw new SandgateError("invalid_request", `the query parameter ${name} must come only once`);
    seen.add(name);
    if (name === keyParameter) continue;
    if (!Object.hasOwn(schema.properties, name)) throw new SandgateError("invalid_request", `Unknown query parameter: ${name.slice(0, 100)}`);
    const { type } = schema.properties[name] as { type?: string };
    values[name] = type === "integer" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  }
  return values;
}
