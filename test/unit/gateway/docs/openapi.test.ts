/** openapi.json and the page of it say of every route what there is to say, and say it truly. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { routes } from "../../../../gateway/api/routes.ts";
import { buildDocument } from "../../../../gateway/docs/document.ts";
import { type Content, isDocumented, templateOf } from "../../../../gateway/docs/operation.ts";
import { renderPage } from "../../../../gateway/docs/page/page.ts";
import { failuresOf } from "../../../../gateway/docs/responses.ts";
import type { Json } from "../../../../gateway/docs/schema.ts";
import { makeReference } from "../../../../gateway/pages.ts";
import { errorCodes, statusOf } from "../../../../shared/errors.ts";

const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const document = buildDocument(routes, version);
const page = renderPage(document, routes);
const documented = routes.filter(isDocumented);

function expectFits(schema: TSchema, value: unknown, what: string): void {
  const compiled = Compile(schema);
  assert.ok(compiled.Check(value), `${what}: ${JSON.stringify(compiled.Errors(value))}`);
}

/** An example of a stream of lines is the text of all of them. */
function valuesOf({ type, example }: Content): unknown[] {
  if (type !== "application/x-ndjson") return [example];
  return String(example)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("a public validator finds openapi.json valid", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  assert.ok(valid, JSON.stringify(errors, undefined, 2));
});

test("its version is the package's, and its address is wherever it was got from", () => {
  assert.equal(document.openapi, "3.1.0");
  assert.equal(document.info.version, version);
  assert.deepEqual(
    document.servers.map(({ url }) => url),
    ["/"],
  );
});

test("every route is in it but those for browsers that load the pages", () => {
  const missing = routes.filter((route) => !isDocumented(route)).map(({ path }) => path);
  assert.deepEqual(
    missing.filter((path) => path.startsWith("/v1/") || path.endsWith("z") || path.endsWith(".json")),
    [],
  );
  const calls = Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
  assert.deepEqual(calls.sort(), documented.map(({ method, path }) => `${method} ${templateOf(path)}`).sort());
});

describe("every call", () => {
  for (const route of documented) {
    const { method, path, docs } = route;
    const operation = document.paths[templateOf(path)]?.[method.toLowerCase()] as Record<string, Json>;

    test(`${method} ${path}`, () => {
      assert.ok(docs.summary && docs.name && docs.tag);
      assert.ok(documented.filter(({ docs: { name } }) => name === docs.name).length === 1, `${docs.name} is there twice`);
      assert.equal(path.includes(":id"), docs.of !== undefined, "what the id stands for");
      for (const content of docs.success.content) {
        assert.ok(content.schema || !/json/.test(content.type), "the answer has no schema");
        assert.notEqual(content.example, undefined, "the answer has no example");
        if (content.schema) for (const value of valuesOf(content)) expectFits(content.schema, value, "the example of the answer");
      }
      assert.ok(docs.success.status === 101 || docs.success.content.length > 0, "there is no answer");
      const statuses = Object.keys(operation.responses as object);
      for (const code of Object.keys(failuresOf(route)) as (keyof typeof statusOf)[]) assert.ok(statuses.includes(String(statusOf[code])), code);
      assert.ok(statuses.includes("500"), "it has no errors");
      if (route.access !== "open" && route.access !== "anyone") assert.ok(statuses.includes("401") && statuses.includes("429"));
      if (route.access === "open") return;
      const { properties } = route.query.schema;
      for (const name of Object.keys(docs.query ?? {})) assert.ok(properties[name], `there is no parameter ${name}`);
      if (Object.keys(properties).length > 0) assert.ok(docs.query, "its parameters have no example");
      const wanted = (route.query.schema.required ?? []) as readonly string[];
      if (wanted.length === 0 || docs.query) expectFits(route.query.schema, docs.query ?? {}, "the example of the query");
      if (route.body === "file") return void assert.ok(docs.file?.length);
      const fields = Object.keys((route.body.schema as { properties?: object }).properties ?? {});
      if (fields.length > 0 && method !== "GET") expectFits(route.body.schema, docs.body, "the example of the body");
      else assert.equal(docs.body, undefined, "it takes no body");
    });
  }
});

test("every code of the closed set is in it, with its status", () => {
  const schema = document.components.schemas?.ErrorCode as { enum: string[] };
  assert.deepEqual(schema.enum, [...errorCodes]);
  for (const code of errorCodes) assert.match(page, new RegExp(`>${statusOf[code]}</td>\\s*<th scope="row"><code>${code}</code>`));
});

test("our own annotations do not get out", () => {
  assert.doesNotMatch(JSON.stringify(document), /"(takes|takesEntry|component)":/);
});

test("every reference leads somewhere", () => {
  for (const [, kind = "", name = ""] of JSON.stringify(document).matchAll(/"#\/components\/(\w+)\/([\w-]+)"/g))
    assert.ok(document.components[kind]?.[name], name);
});

test("every object and field of an answer says what it is", () => {
  for (const [name, schema] of Object.entries(document.components.schemas ?? {})) {
    for (const [field, { description, $ref, type, items, enum: values }] of Object.entries((schema.properties ?? {}) as Record<string, Json>)) {
      const speaksForItself =
        $ref || values || type === "object" || (items as Json | undefined)?.$ref || (items as Json | undefined)?.anyOf || field === "error";
      assert.ok(description || speaksForItself, `${name}.${field}`);
    }
  }
});

test("links within the page lead somewhere, and no id is there twice", () => {
  const ids = [...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const [, target] of page.matchAll(/href="#([^"]+)"/g)) assert.ok(ids.includes(target), `#${target}`);
});

test("nothing in the page is inline or from elsewhere", () => {
  assert.doesNotMatch(page, /<script>|<style|\son\w+=|\sstyle=|(?:src|href)="(?:https?:)?\/\//);
});

test("both are made in the same bytes every time", async () => {
  const plain = { link: (html: string) => html };
  const [first, second] = [await makeReference(routes, plain), await makeReference(routes, plain)];
  assert.equal(first.document.etag, second.document.etag);
  assert.equal(first.page.body, second.page.body);
});
