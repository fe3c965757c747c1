/** The schemas as TypeScript declarations, so that programs using the client need no other package for type checking. */
import { globSync } from "node:fs";
import { wordsOf } from "../schemas/fields.ts";

/** A JSON schema, limited to what our schemas use. */
interface Schema {
  readonly component?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** All schemas, by their export names. */
async function schemas(): Promise<Map<string, Schema>> {
  const files = globSync("**/*.ts", { cwd: new URL("../schemas/", import.meta.url) }).sort();
  const modules = await Promise.all(files.map((file) => import(new URL(`../schemas/${file}`, import.meta.url).href)));
  const named = modules.flatMap((module) => Object.entries(module as Record<string, Schema>));
  return new Map(named.filter(([name, value]) => /^[A-Z]/.test(name) && typeof value === "object"));
}

/** A module with declarations of the wanted types and of the types they refer to. */
export async function declarations(wanted: readonly string[]): Promise<string> {
  const all = await schemas();
  // An optional schema is a copy of the original, which keeps its component name.
  const nameOf = new Map([...all].flatMap(([name, schema]) => (schema.properties ? [[schema.component ?? schema, name]] : [])));
  const refer: Refer = (schema) => {
    const name = nameOf.get(schema.component ?? schema);
    return name === undefined ? undefined : add(name);
  };
  const text = new Map<string, string>();
  const add = (name: string): string => {
    const schema = all.get(name);
    if (!schema) throw new Error(`there is no schema ${name}`);
    if (text.has(name)) return name;
    text.set(name, "");
    const body = typeOf(schema, "", refer);
    text.set(name, `${comment(schema, "")}export ${schema.properties ? `interface ${name} ${body}` : `type ${name} = ${body};`}\n`);
    return name;
  };
  for (const name of [...wanted].sort()) add(name);
  return [...text.values()].join("\n");
}

/** The name of a schema, if it has one. */
type Refer = (schema: Schema) => string | undefined;

function typeOf(schema: Schema, indent: string, refer: Refer): string {
  const inner = (one: Schema): string => refer(one) ?? typeOf(one, indent, refer);
  const { type, anyOf, items, properties, patternProperties } = schema;
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (anyOf) return anyOf.map(inner).join(" | ");
  if (items) return `${inner(items).replace(/^[^{].* \| .*$/s, "($&)")}[]`;
  if (patternProperties) return `Record<string, ${Object.values(patternProperties).map(inner).join(" | ")}>`;
  if (properties) return members(schema, indent, refer);
  if (type === "integer") return "number";
  if (type === "string" || type === "number" || type === "boolean" || type === "null") return type;
  throw new Error(`no TypeScript for ${JSON.stringify(schema)}`);
}

function members({ properties = {}, required = [] }: Schema, indent: string, refer: Refer): string {
  const deeper = `${indent}  `;
  const lines = Object.entries(properties).map(([name, schema]) => {
    const type = refer(schema) ?? typeOf(schema, deeper, refer);
    return `${comment(schema, deeper)}${deeper}${name}${required.includes(name) ? "" : "?"}: ${type};\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

function comment(schema: Schema, indent: string): string {
  const words = wordsOf(schema as Record<string, unknown>);
  return words && `${indent}/** ${words.replaceAll("*/", "*\\/")} */\n`;
}
