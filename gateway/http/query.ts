/** Query strings as objects, numbers as numbers where the schema has one. */
import type { TObject } from "typebox";

/** Known parameters only; a text that is no number stays text, so that the check can name it. */
export function parseQuery(schema: TObject, query: string): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  if (query === "") return values;
  const given = new URLSearchParams(query);
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = given.get(name);
    if (text === null) continue;
    values[name] = (property as { type?: string }).type === "integer" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  }
  return values;
}
