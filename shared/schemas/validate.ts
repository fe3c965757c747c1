/** Compiled TypeBox checks whose messages name the field and its bound. */
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { SandgateError } from "../errors.ts";

/** A compiled schema: returns the value typed, or throws `invalid_request` naming the field at fault. */
export type Check<T> = (value: unknown) => T;

interface Fault {
  keyword: string;
  schemaPath: string;
  instancePath: string;
  params: Record<string, unknown>;
}

/** More values than any valid request has. Larger requests are refused unchecked. */
const valuesMax = 4_096;
/** Names in messages are cut to this many characters. */
const shownMax = 100;

/** What a call without a query or a body gives: always the same, so that each schema is asked about it only once. */
export const noInput: Readonly<Record<string, never>> = Object.freeze({});

/**
 * A checker for callers' input: as `checker`, but fields that the schema does not name are refused at every level.
 * Not for messages over NATS, where a newer process may send fields that an older one does not know.
 */
export function inputChecker<S extends TSchema>(schema: S): { readonly schema: S; readonly check: Check<Static<S>> } {
  const strict = closed(schema) as S;
  const check = checker(strict);
  let takesNone = false;
  return {
    schema: strict,
    check: (value) => {
      if (takesNone && value === noInput) return value as Static<S>;
      refuseTooMany(value);
      const checked = check(value);
      takesNone ||= value === noInput;
      return checked;
    },
  };
}

/** The schema with all of its objects closed to unknown fields. */
function closed(schema: TSchema): TSchema {
  const { anyOf, items, properties } = schema as { anyOf?: TSchema[]; items?: TSchema; properties?: Record<string, TSchema> };
  if (items) return { ...schema, items: closed(items) };
  if (anyOf) return { ...schema, anyOf: anyOf.map(closed) };
  if (!properties) return schema;
  return { ...schema, additionalProperties: false, properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, closed(one)])) };
}

/** Guards against inputs with very many values, whose faults would take long to find and explain. */
function refuseTooMany(value: unknown): void {
  const waiting: unknown[] = [value];
  for (let count = 0; waiting.length > 0; ) {
    const one = waiting.pop();
    if (typeof one !== "object" || one === null) continue;
    const inside = Object.values(one);
    count += inside.length;
    if (count > valuesMax) throw new SandgateError("invalid_request", `the request must have at most ${valuesMax} fields`);
    waiting.push(...inside);
  }
}

/** Compiles a schema at the first call, so that a start does not wait for what it may never use; later calls are cheap. */
export function checker<S extends TSchema>(schema: S): Check<Static<S>> {
  let compiled: ReturnType<typeof compile<S>> | undefined;
  return (value) => {
    compiled ??= compile(schema);
    if (compiled.Check(value)) return value as Static<S>;
    const faults = compiled.Errors(value) as Fault[];
    // The first fault of a union only says that another alternative did not match.
    const fault = faults.find(isUnknownField) ?? faults[0];
    throw new SandgateError("invalid_request", fault ? explain(fault, schema) : "the request is not valid");
  };
}

const compile = <S extends TSchema>(schema: S) => Compile(schema);

const isUnknownField = ({ keyword, schemaPath }: Fault): boolean => keyword === "boolean" && schemaPath.endsWith("/additionalProperties");

function explain(fault: Fault, root: TSchema): string {
  const path = fault.instancePath.slice(1).replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~");
  const field = path.length > shownMax ? `${path.slice(0, shownMax)}…` : path;
  if (fault.keyword === "required") {
    const missing = (fault.params.requiredProperties as string[])[0];
    return `Missing required field: ${field ? `${field}.` : ""}${missing}`;
  }
  const schema = schemaAt(root, fault.instancePath);
  const name = field || "the request";
  if (isUnknownField(fault) && !schema?.takes) return `Unknown field: ${field}`;
  if (schema?.takes) return `${name} must be ${schema.takes}`;
  if (schema?.type) return `${name} must be ${bounds(schema)}`;
  return `${name} is not valid`;
}

type Described = { type?: string; takes?: string; minimum?: number; maximum?: number; minLength?: number; maxLength?: number } & Record<string, unknown>;

/** The schema of the value at an instance path, so that a message can state all of its bounds. */
function schemaAt(root: TSchema, path: string): Described | undefined {
  let schema: Described | undefined = root as Described;
  for (const step of path.split("/").slice(1)) {
    // In a union, take the object: no other alternative has nested values.
    const alternatives = (schema?.anyOf ?? []) as Described[];
    const properties = (schema?.properties ?? alternatives.find((one) => one.properties)?.properties) as Record<string, Described> | undefined;
    if (schema?.takesEntry && !properties?.[step]) return { takes: schema.takesEntry as string };
    schema = properties?.[step] ?? (schema?.items as Described | undefined);
  }
  return schema;
}

const articles: Record<string, string> = {
  string: "a string",
  integer: "an integer",
  number: "a number",
  object: "an object",
  boolean: "true or false",
  array: "an array",
};

function bounds(schema: Described): string {
  const { type = "", minimum, maximum, minLength, maxLength } = schema;
  if (minimum !== undefined && maximum !== undefined)
    return type === "integer" ? `an integer between ${minimum} and ${maximum}` : `between ${minimum} and ${maximum}`;
  if (minLength !== undefined && maxLength !== undefined) return `a string of ${minLength} to ${maxLength} characters`;
  if (maxLength !== undefined) return `a string of at most ${maxLength} characters`;
  return articles[type] ?? "valid";
}
