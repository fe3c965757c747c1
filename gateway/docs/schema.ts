/** TypeBox schemas as openapi.json has them: our own annotations turned into words, named objects into components. */
import type { TSchema } from "typebox";

export type Json = Readonly<Record<string, unknown>>;

/** Turns schemas into their JSON form and collects those that have a name. */
export class Schemas {
  readonly #named = new Map<string, Json>();
  readonly #sources = new Map<string, string>();

  /** By name, in the order in which they were first met. */
  get components(): Json {
    return Object.fromEntries(this.#named);
  }

  /** A schema for the place where it is used; one with a name becomes a reference. */
  of(schema: TSchema): Json {
    const { component, ...rest } = schema as { component?: string } & Record<string, unknown>;
    if (!component) return this.#plain(rest);
    const source = JSON.stringify(rest);
    if ((this.#sources.get(component) ?? source) !== source) throw new Error(`two schemas have the name ${component}`);
    if (!this.#named.has(component)) {
      this.#sources.set(component, source);
      this.#named.set(component, {}); // Its place comes before those that it holds.
      this.#named.set(component, this.#plain(rest));
    }
    return { $ref: `#/components/schemas/${component}` };
  }

  #plain(schema: Record<string, unknown>): Json {
    const { takes, takesEntry, "~refine": _refine, ...rest } = schema;
    const words = describe(rest.description, takes, takesEntry);
    const { anyOf, ...others } = { ...rest, ...(words ? { description: words } : {}) } as Record<string, unknown>;
    const values = constantsOf(anyOf);
    if (values) return { type: "string", enum: values, ...others };
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

/** A union of literals is an enumeration. */
function constantsOf(alternatives: unknown): unknown[] | undefined {
  if (!Array.isArray(alternatives) || !alternatives.every((one: Json) => "const" in one)) return undefined;
  return alternatives.map((one: Json) => one.const);
}

/** The bounds in the words of the message that refuses what is beyond them. */
function describe(description: unknown, takes: unknown, takesEntry: unknown): string {
  return [description, takes ? `Must be ${takes}.` : "", takesEntry ? `Each must be ${takesEntry}.` : ""].filter(Boolean).join(" ");
}
