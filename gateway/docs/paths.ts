/** Generates one operation of openapi.json. */
import type { TSchema } from "typebox";
import { ids } from "./examples.ts";
import type { OperationDocs } from "./operation.ts";
import type { Responses } from "./responses.ts";
import type { DocumentedRoute } from "./route.ts";
import type { Json, Schemas } from "./schema.ts";

type Properties = Readonly<Record<string, TSchema>>;
interface ObjectSchema {
  readonly properties: Properties;
  readonly required?: readonly string[];
}

export function operationOf(route: DocumentedRoute, schemas: Schemas, responses: Responses): Json {
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
