/** Converts TypeBox schemas for openapi.json: our own annotations become descriptions, named objects become components. */
import type { TSchema } from "typebox";
import { wordsOf } from "../../shared/schemas/fields.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Converts schemas to JSON Schema and collects the named ones. */
export class Schemas {
  readonly #named = new Map<string, Json>();
  readonly #sources = new Map<string, string>();

  /** The named schemas, in the order in which they were first used. */
  get components(): Json {
    return Object.fromEntries(this.#named);
  }

  /** The schema as used in place: a named one becomes a reference. */
  of(schema: TSchema): Json {
    const { component, ...rest } = schema as { component?: string } & Record<string, unknown>;
    if (!component) return this.#plain(rest);
    const source = JSON.stringify(rest);
    if ((this.#sources.get(component) ?? source) !== source) throw new Error(`two schemas have the name ${component}`);
    if (!this.#named.has(component)) {
      this.#sources.set(component, source);
      this.#named.set(component, {}); // Reserves its position before the schemas that it contains.
      this.#named.set(component, this.#plain(rest));
    }
    return { $ref: `#/components/schemas/${component}` };
  }

  #plain(schema: Record<string, unknown>): Json {
    const { takes: _takes, takesEntry: _takesEntry, "~refine": _refine, ...rest } = schema;
    const words = wordsOf(schema);
    const { anyOf, ...others } = { ...rest, ...(words ? { description: words } : {}) } as Record<string, unknown>;
    if (Array.isArray(others.enum) && !others.type) others.type = "string";
    const nested = Object.entries(others).map(([name, value]) => [name, this.#nested(name, value)]);
    return { ...Object.fromEntries(nested), ...(anyOf ? { anyOf: (anyOf as TSchema[]).map((one) => this.of(one)) } : {}) };
  }

  #nested(name: string, value: unknown): unknown {
    if (name === "properties" || name === "patternProperties") {
      return Object.fromEntries(Object.entries(value as Record<string, TSchema>).map(([field, schema]) => [field, this.of(schema)]));
    }
    return name === "items" ? this.of(value as TSchema) : value;
  }
}
