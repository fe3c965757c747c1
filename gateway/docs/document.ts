/** Generates openapi.json from the route table and from the schemas that validate calls. */

import { components, introduction, securitySchemes } from "./common.ts";
import { tags } from "./operation.ts";
import { operationOf } from "./paths.ts";
import { Responses } from "./responses.ts";
import { isDocumented, type RouteFacts, templateOf } from "./route.ts";
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
