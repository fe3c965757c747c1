/** The largest and oddest values that can be sent for a field, derived from its schema. */
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

/** Longer than any text that a call takes, where the schema names no end. */
const longest = 130_500;
/** The largest number that reads the same in a query and in a body. */
const largest = 999_999_999_999_999;

type Described = TSchema & {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Described[];
  readonly properties?: Readonly<Record<string, Described>>;
  readonly patternProperties?: Readonly<Record<string, Described>>;
  readonly required?: readonly string[];
  readonly maxLength?: number;
  readonly maxProperties?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Described;
};

/** Characters that grow in JSON, that are invalid by themselves, or that end a line or a string in other languages. */
const characters = ["\u0001", "\u0000", "\u007f", "\u2028", "\ud800", "😀", '"', "\\", "/", "é", "\r\n", "a", "7"];
/** Texts that mean something to one part or another. */
const words = [
  "",
  "/",
  "/../..",
  "default",
  "localhost/a:b",
  "docker.io/library/a",
  "__proto__",
  "constructor",
  "true",
  "tar",
  "644",
  "07777",
  "-1",
  "1e400",
  "NaN",
];
const times = ["2026-01-31T12:00:00Z", "0000-01-01", "9999-12-31T23:59:59.999999999+99:99", "2026-99-99T99:99:99Z"];
const names = ["SIGKILL", "../../etc/passwd", "%00%ff", "$(id)", "';--"];
const wrongKinds: readonly unknown[] = [null, true, 1.5, largest, [[]], JSON.parse('{"__proto__":{"a":1}}')];
/** What fields are given that must name something that there is, or be something that works, by their name. */
export type Known = Readonly<Record<string, readonly string[]>>;

/** As long as it may be, counted in characters where the schema does so, else in bytes. */
function filledBy(character: string, { maxLength }: Described, begin: string): string {
  const size = maxLength === undefined ? Buffer.byteLength(character) : character.length;
  return begin + character.repeat(Math.floor(((maxLength ?? longest) - begin.length) / size));
}

function textsOf(schema: Described): string[] {
  const begin = Compile(schema).Check("a".repeat(Math.min(10, schema.maxLength ?? 10))) ? "" : "/";
  // One too long as well: the bound itself must hold.
  return [...words, ...times, ...names, ...characters.map((character) => filledBy(character, schema, begin)), "a".repeat((schema.maxLength ?? longest) + 1)];
}

/** Values of a field, refused or not. */
function extremesOf(schema: TSchema, known: Known): unknown[] {
  const { anyOf, type, properties, patternProperties, items, ...rest } = schema as Described;
  if ("const" in rest) return [rest.const];
  if (rest.enum) return [...rest.enum];
  if (anyOf) return anyOf.flatMap((one) => extremesOf(one, known));
  if (type === "string") return textsOf(schema as Described);
  if (type === "boolean") return [true, false];
  if (type === "integer" || type === "number") return [rest.minimum ?? 0, rest.maximum ?? largest, (rest.minimum ?? 0) - 1, (rest.maximum ?? largest) + 1];
  if (type === "array") return [[], items ? Array.from({ length: 1_000 }, () => extremesOf(items, known)[0]) : []];
  if (patternProperties) return mapsOf(Object.values(patternProperties)[0] as Described, rest.maxProperties ?? 1_000);
  if (properties) return objectsAround(smallestOf(schema, known), schema, known);
  return [...wrongKinds];
}

/** Maps with as many entries, and as long ones, as fit; and with names that objects have by themselves. */
function mapsOf(value: Described, count: number): unknown[] {
  const long = value.maxLength ?? longest;
  const filled = (character: string, entries: number, length: number) =>
    Object.fromEntries(Array.from({ length: entries }, (_, index) => [`A${index}`, character.repeat(length)]));
  return [
    ...["\u0001", "\u2028", "\ud800"].flatMap((character) => [filled(character, 3, Math.floor(long / 3)), filled(character, count, 80)]),
    filled("a", count + 1, 1),
    JSON.parse('{"__proto__":"1","constructor":"2","toString":"3"}'),
    JSON.parse('{"__proto__":{"polluted":true}}'),
    { "": "", "=": "=", "\u0000": "\u0000", "A\n": "\n" },
  ];
}

/** All values that the field refuses, and of those it accepts the given number of largest ones; if none is given, three and the smallest one. */
function chosen(name: string, schema: TSchema, known: Known, takenMax?: number): { taken: unknown[]; refused: unknown[] } {
  const check = Compile(schema);
  const values = [...extremesOf(schema, known), ...wrongKinds].filter((value) => value !== "");
  const taken = values
    .filter((value) => check.Check(value))
    .map((value) => ({ value, bytes: Buffer.byteLength(JSON.stringify(value)) }))
    .sort((one, other) => other.bytes - one.bytes)
    .map(({ value }) => value);
  const few = taken.length > 3 ? [...taken.slice(0, 3), taken.at(-1)] : taken;
  return {
    taken: [...(takenMax === undefined ? few : taken.slice(0, takenMax)), ...(known[name] ?? [])],
    refused: values.filter((value) => !check.Check(value)),
  };
}

const propertiesOf = (schema: TSchema): Readonly<Record<string, Described>> => (schema as Described).properties ?? {};

/** The smallest object that the schema accepts. */
export function smallestOf(schema: TSchema, known: Known): Record<string, unknown> {
  const { required = [] } = schema as Described;
  return Object.fromEntries(required.map((name) => [name, chosen(name, propertiesOf(schema)[name] as TSchema, known).taken.at(-1)]));
}

/** The objects that differ from the smallest in each field in turn. */
function objectsAround(base: Readonly<Record<string, unknown>>, schema: TSchema, known: Known, takenMax?: number): Record<string, unknown>[] {
  return Object.entries(propertiesOf(schema)).flatMap(([name, field]) => {
    const { taken, refused } = chosen(name, field, known, takenMax);
    return [...taken, ...refused].map((value) => ({ ...base, [name]: value }));
  });
}

/**
 * The smallest object, then all fields at their largest, unknown fields, and each field in turn at its extremes.
 *
 * @param takenMax how many of the largest values that a field takes are sent.
 */
export function objectsOf(schema: TSchema, known: Known, takenMax?: number): Record<string, unknown>[] {
  const base = smallestOf(schema, known);
  const full = Object.fromEntries(Object.entries(propertiesOf(schema)).map(([name, field]) => [name, known[name]?.[0] ?? chosen(name, field, known).taken[0]]));
  const strange = JSON.parse(JSON.stringify(base).replace(/}$/, `${Object.keys(base).length > 0 ? "," : ""}"__proto__":{"polluted":true}}`));
  return [base, full, strange, { ...base, ["a".repeat(longest)]: 1 }, ...objectsAround(base, schema, known, takenMax)];
}
