/** Generates openapi.json from the route table and from the schemas that validate calls. */

import type { TSchema } from "typebox";
import { components, introduction, securitySchemes } from "./common.ts";
import { ids } from "./examples.ts";
import { type DocumentedRoute, isDocumented, type OperationDocs, type RouteFacts, tags, templateOf } from "./operation.ts";
import { Responses } from "./responses.ts";
import { type Json, Schemas } from "./schema.ts";

export interface Server {
  readonly url: string;
  readonly description?: string;
}

/** The OpenAPI document, with the parts that the reference page reads. */
export interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly summary: string; readonly description: string };
  readonly servers: readonly Server[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, Json>>>>;
}

export function buildDocument(routes: readonly RouteFacts[], version: string): Document {
  const schemas = new Schemas();
  const documented = routes.filter(isDocumented);
  const responses = new Responses(schemas, documented);
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of documented) {
    const path = templateOf(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas, responses) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Sandgate",
      version,
      summary: "Sandboxes for untrusted code, on your own machines.",
      description: introduction,
    },
    servers: [{ url: "/", description: "The gateway that served this document." }],
    tags: Object.entries(tags)
      .filter(([name]) => documented.some(({ docs }) => docs.tag === name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: { schemas: schemas.components as Record<string, Json>, responses: responses.shared, ...components, securitySchemes },
  };
}

type Properties = Readonly<Record<string, TSchema>>;
interface ObjectSchema {
  readonly properties: Properties;
  readonly required?: readonly string[];
}

function operationOf(route: DocumentedRoute, schemas: Schemas, responses: Responses): Json {
  const { tag, name, summary, description, once } = route.docs;
  const own = [...pathParameters(route.docs), ...queryParameters(route, schemas)];
  const parameters = once ? [...own, { $ref: "#/components/parameters/Idempotency-Key" }] : own;
  const requestBody = bodyOf(route, schemas, responses);
  return {
    tags: [tag],
    operationId: name,
    summary,
    ...(description ? { description } : {}),
    security: securityOf(route),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(requestBody ? { requestBody } : {}),
    responses: responses.of(route),
  };
}

function pathParameters({ of }: OperationDocs): Json[] {
  if (!of) return [];
  return [
    { name: "id", in: "path", required: true, description: `The id of the ${of === "key" ? "API key" : of}.`, schema: { type: "string" }, example: ids[of] },
  ];
}

function queryParameters(route: DocumentedRoute, schemas: Schemas): Json[] {
  if (route.access === "open") return [];
  const { properties, required = [] } = route.query.schema as unknown as ObjectSchema;
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...plain } = schemas.of(schema);
    const example = route.docs.query?.[name];
    return {
      name,
      in: "query",
      ...(required.includes(name) ? { required: true } : {}),
      description,
      schema: plain,
      ...(example === undefined ? {} : { example }),
    };
  });
}

function bodyOf(route: DocumentedRoute, schemas: Schemas, responses: Responses): Json | undefined {
  if (route.access === "open" || route.method === "GET") return undefined;
  if (route.body === "file") return { required: true, content: responses.contents(route.docs.file ?? []) };
  const schema = route.body.schema as TSchema & ObjectSchema;
  if (Object.keys(schema.properties).length === 0) return undefined;
  const required = (schema.required ?? []).length > 0;
  return { required, content: { "application/json": { schema: schemas.of(schema), ...(route.docs.body ? { example: route.docs.body } : {}) } } };
}

/** The accepted security schemes; any one of them is enough. */
function securityOf(route: DocumentedRoute): Json[] {
  if (route.access === "open" || route.access === "anyone") return [];
  const { access, method, asksWho } = route;
  const browser = { browser: [], ...(asksWho ? {} : { browserAccount: [] }), ...(method === "GET" ? {} : { csrfToken: [] }) };
  return access === "person" ? [browser] : [{ apiKey: [] }, { apiKeyQuery: [] }, browser];
}
