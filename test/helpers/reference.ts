/** Compares answers of a running gateway with what openapi.json says of them. */
import assert from "node:assert/strict";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { routes } from "../../gateway/api/routes.ts";
import { isDocumented, templateOf } from "../../gateway/docs/operation.ts";
import { failuresOf } from "../../gateway/docs/responses.ts";
import { ErrorAnswer } from "../../shared/schemas/fields.ts";

const documented = routes.filter(isDocumented);
type Documented = (typeof documented)[number];

/** Records which calls have been compared, to report those that were not. */
export class Comparison {
  readonly #seen = new Set<string>();

  /** Fails unless the answer has a documented status and type, and a body with all that is documented and nothing else. */
  async expectDocumented(method: string, path: string, answer: Response): Promise<unknown> {
    const route = routeOf(method, path);
    const { name, success, others = [] } = route.docs;
    const text = await answer.text();
    const what = `${name} answered ${answer.status}: ${text.slice(0, 500)}`;
    const type = answer.headers.get("content-type")?.split(";")[0] ?? "";
    assert.match(answer.headers.get("x-request-id") ?? "", /^req_/, what);
    const own = [success, ...others].find(({ status }) => status === answer.status);
    if (!own) return expectFailure(route, answer.status, JSON.parse(text), what);
    this.#seen.add(name);
    const content = own.content.find((one) => one.type === type);
    assert.ok(content, `${what}: ${type} is not documented`);
    if (route.access !== "open" && route.access !== "anyone") assert.ok(answer.headers.has("ratelimit") && answer.headers.has("ratelimit-policy"), what);
    if (!content.schema) return text;
    const values = type.endsWith("ndjson") ? text.trim().split("\n") : [text];
    for (const value of values) expectExactly(content.schema, JSON.parse(value), what);
    return type.endsWith("ndjson") ? text : JSON.parse(text);
  }

  /** Calls of which no successful answer has been compared. */
  get forgotten(): string[] {
    return documented.filter(({ docs }) => !this.#seen.has(docs.name) && docs.success.status !== 101).map(({ docs }) => docs.name);
  }
}

function routeOf(method: string, path: string): Documented {
  const [asked = ""] = path.split("?");
  const fits = (pattern: string): boolean => new RegExp(`^${templateOf(pattern).replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(asked);
  const found =
    documented.find((route) => route.method === method && route.path === asked) ?? documented.find((route) => route.method === method && fits(route.path));
  assert.ok(found, `${method} ${path} is not documented`);
  return found;
}

function expectFailure(route: Documented, status: number, body: unknown, what: string): unknown {
  expectExactly(ErrorAnswer, body, what);
  const { code } = (body as { error: { code: keyof ReturnType<typeof failuresOf> } }).error;
  assert.ok(failuresOf(route)[code], `${what}: ${code} is not documented (${status})`);
  return body;
}

/** OpenAPI allows more members than it names; here each must be named. */
function expectExactly(schema: TSchema, value: unknown, what: string): void {
  const compiled = Compile(closed(schema) as TSchema);
  assert.ok(compiled.Check(value), `${what}: ${JSON.stringify(compiled.Errors(value))}`);
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  // A union of objects is closed by its alternatives.
  return "properties" in schema && (schema as { type?: string }).type === "object" && !("openapi" in (schema.properties as object))
    ? { ...inner, additionalProperties: false }
    : inner;
}
