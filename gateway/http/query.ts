/** Query strings as objects, numbers as numbers where the schema has one. */
import type { TObject } from "typebox";
import { SandgateError } from "../../shared/errors.ts";

/** Of every call: stands in place of the header where none can be set. Who calls is known before the query is read. */
const keyParameter = "api_key";

/**
 * A text that is no number stays text, so that the check can name it.
 *
 * @throws {SandgateError} `invalid_request` for a parameter that the schema does not have, and for one that comes twice.
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
