/** Renders one operation of the reference. */
import { type ErrorCode, statusOf } from "../../../shared/errors.ts";
import { type Html, html } from "../../../shared/util/html.ts";
import type { Document } from "../document.ts";
import { type DocumentedRoute, templateOf } from "../operation.ts";
import { failuresOf } from "../responses.ts";
import type { Json } from "../schema.ts";
import { curlOf } from "./curl.ts";
import { fieldsTable, typeOf } from "./fields.ts";
import { coloured, prose, snippet, words } from "./html.ts";

type Schemas = Readonly<Record<string, Json>>;

export const badge = (method: string): Html => html`<span class="method ${method.toLowerCase()}">${method}</span>`;
export const idOf = ({ docs }: DocumentedRoute): string => `call-${docs.name}`;

/** A path that may wrap between segments. */
const breakable = (path: string): Html => html`${path.split(/(?=\/)/).map((part) => html`${part}<wbr>`)}`;

export function renderOperation(document: Document, route: DocumentedRoute): Html {
  const { method, path, docs } = route;
  const template = templateOf(path);
  const operation = document.paths[template]?.[method.toLowerCase()] as Json;
  const schemas = document.components.schemas as Schemas;
  const id = idOf(route);
  return html`<section class="call" id="${id}" aria-labelledby="${id}-title">
    <h3 id="${id}-title"><a class="anchor" href="#${id}">${docs.summary}</a></h3>
    <p class="call-line">${badge(method)}<code>${breakable(template)}</code>${access(route)}</p>
    <div class="call-parts">
      <div class="call-words">
        ${docs.description ? prose(docs.description) : undefined}
        ${parametersTable(document, operation)}
        ${bodies(schemas, operation)}
        ${answers(schemas, route)}
        ${errors(route)}
      </div>
      <div class="call-code">${samples(route)}</div>
    </div>
  </section>`;
}

function access({ access }: DocumentedRoute): Html | undefined {
  if (access === "person") return html`<span class="badge">Logged in only</span>`;
  if (access === "operator") return html`<span class="badge">Operator</span>`;
  return access === "account" ? undefined : html`<span class="badge">No key</span>`;
}

function parametersTable({ components }: Document, { parameters = [] }: Json): Html | undefined {
  const all = (parameters as Json[]).map((one) => (one.$ref ? (components.parameters?.[String(one.$ref).split("/").at(-1) ?? ""] as Json) : one));
  if (all.length === 0) return undefined;
  const rows = all.map(
    (one) => html`<tr>
      <th scope="row"><code>${String(one.name)}</code>${one.required === true && html`<span class="required">required</span>`}</th>
      <td>${String(one.in)}</td>
      <td>${typeOf(one.schema as Json)}</td>
      <td>${words(`${one.description ?? ""}${defaultOf(one.schema as Json)}`)}</td>
    </tr>`,
  );
  return html`<h4>Parameters</h4><div class="table-frame"><table class="fields four"><caption class="visually-hidden">Parameters</caption>
    <thead><tr><th scope="col">Name</th><th scope="col">In</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

const defaultOf = ({ default: fallback }: Json): string => (fallback === undefined ? "" : ` Default: \`${JSON.stringify(fallback)}\`.`);

function bodies(schemas: Schemas, { requestBody }: Json): Html | undefined {
  if (!requestBody) return undefined;
  const { content, required } = requestBody as { content: Record<string, { schema?: Json }>; required: boolean };
  return html`${Object.entries(content).map(
    ([type, { schema }]) => html`<h4>Body <span class="media-type">${type}</span>${!required && html`<span class="media-type">optional</span>`}</h4>
      ${schema ? fieldsTable(schemas, schema, "Body", "body") : html`<p>The bytes of the file.</p>`}`,
  )}`;
}

function answers(schemas: Schemas, { docs }: DocumentedRoute): Html {
  return html`<h4>Answer</h4>${[docs.success, ...(docs.others ?? [])].map(({ status, description, content }) => {
    const [first] = content;
    const name = (first?.schema as { component?: string } | undefined)?.component;
    const schema = name ? { $ref: `#/components/schemas/${name}` } : undefined;
    const table = schema && fieldsTable(schemas, schema, `Fields of ${name}`);
    return html`<p class="answer-line"><span class="status ${status < 400 ? "good" : "bad"}">${status}</span> <span>${words(description)}</span>
        ${first && html`<span class="media-type">${first.type}</span>`}</p>
      ${table && html`<details><summary>Fields of ${name}</summary>${table}</details>`}`;
  })}`;
}

function errors(route: DocumentedRoute): Html {
  const failures = Object.entries(failuresOf(route)) as [ErrorCode, { when: string }][];
  const rows = failures
    .sort(([a], [b]) => statusOf[a] - statusOf[b])
    .map(([code, { when }]) => html`<tr><td class="number">${statusOf[code]}</td><th scope="row"><code>${code}</code></th><td>${words(when)}</td></tr>`);
  return html`<details><summary>Errors</summary><div class="table-frame"><table class="fields codes"><caption class="visually-hidden">Errors</caption>
    <thead><tr><th scope="col">Status</th><th scope="col">Code</th><th scope="col">When</th></tr></thead><tbody>${rows}</tbody></table></div></details>`;
}

function samples(route: DocumentedRoute): Html {
  const { success } = route.docs;
  const [first] = success.content;
  return html`<h4>Example</h4>${snippet(`Example: ${route.docs.summary}`, route.docs.program ?? curlOf(route))}
    ${first?.example !== undefined && html`<h4>Answer <span class="status good">${success.status}</span></h4>${snippet(`Answer: ${route.docs.summary}`, coloured(first.example))}`}`;
}
