/** Tables of the fields of a body or an answer. */

import { type Html, html } from "../../../shared/util/html.ts";
import type { Json } from "../schema.ts";
import { words } from "./html.ts";

type Schemas = Readonly<Record<string, Json>>;

/** One line of a table. */
interface Field {
  /** Such as `resources.cpus`, or `logs[].command`. */
  readonly name: string;
  readonly required: boolean;
  readonly type: Html;
  readonly description: string;
}

const refName = ({ $ref }: Json): string | undefined => (typeof $ref === "string" ? $ref.split("/").at(-1) : undefined);

/** Whether the fields are sent or received. */
type Direction = "body" | "answer";

/** A table of the fields of a schema. Nested fields follow their parent; a reference is resolved. */
export function fieldsTable(schemas: Schemas, schema: Json, label: string, direction: Direction = "answer"): Html {
  const name = refName(schema);
  const fields = fieldsOf((name && schemas[name]) || schema, "");
  if (fields.length === 0) return html``;
  const rows = fields.map(
    (field) => html`<tr>
      <th scope="row"><code>${field.name.split(/(?<=\.)/).flatMap((part, index) => (index === 0 ? [part] : [html`<wbr>`, part]))}</code>${noteOf(field, direction)}</th>
      <td>${field.type}</td>
      <td>${words(field.description)}</td>
    </tr>`,
  );
  return html`<div class="table-frame"><table class="fields"><caption class="visually-hidden">${label}</caption>
    <thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** Marks only the exceptions: required fields of bodies, and optional fields of answers. */
function noteOf({ required }: Field, direction: Direction): Html | undefined {
  if (direction === "body") return required ? html`<span class="required">required</span>` : undefined;
  return required ? undefined : html`<span class="optional">not always</span>`;
}

function fieldsOf({ properties = {}, required = [], anyOf }: Json, prefix: string): Field[] {
  if (Array.isArray(anyOf)) return (anyOf as Json[]).flatMap((one) => (one.properties ? fieldsOf(one, prefix) : []));
  return Object.entries(properties as Schemas).flatMap(([key, schema]) => {
    const own = { name: prefix + key, required: (required as string[]).includes(key), type: typeOf(schema), description: meaningOf(schema) };
    const inner = (schema.type === "array" ? schema.items : schema) as Json;
    return [own, ...fieldsOf(inner, `${own.name}${schema.type === "array" ? "[]" : ""}.`)];
  });
}

function meaningOf({ description = "", default: fallback }: Json): string {
  return `${description}${fallback === undefined ? "" : ` Default: \`${JSON.stringify(fallback)}\`.`}`;
}

/** The type in words; a named object becomes a link. */
export function typeOf(schema: Json): Html {
  const name = refName(schema);
  if (name) return html`<a href="#schema-${name}">${name}</a>`;
  const { type, items, anyOf, enum: values, format, patternProperties } = schema;
  if (Array.isArray(anyOf)) return html`${(anyOf as Json[]).map((one, index) => html`${index > 0 && " or "}${typeOf(one)}`)}`;
  if (Array.isArray(values)) return html`${values.map((value, index) => html`${index > 0 && " "}<code>${String(value)}</code>`)}`;
  if ("const" in schema) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (type === "array") return html`list of ${typeOf(items as Json)}`;
  if (format === "date-time") return html`time`;
  if (format === "binary") return html`file`;
  if (patternProperties) return html`object of strings`;
  return html`${String(type ?? "any")}`;
}
