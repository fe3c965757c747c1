/** Pure functions of the gateway's HTTP side. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cors } from "../../../gateway/http/cors.ts";
import { parseQuery } from "../../../gateway/http/query.ts";
import { statusLine } from "../../../gateway/http/status.ts";
import { statusOf } from "../../../shared/errors.ts";
import { DownloadQuery, PageQuery } from "../../../shared/schemas/api.ts";

test("a query becomes an object of the known parameters, numbers as numbers", () => {
  assert.deepEqual(parseQuery(PageQuery, "page=2&page_size=50&other=1"), { page: 2, page_size: 50 });
  assert.deepEqual(parseQuery(PageQuery, ""), {});
  assert.deepEqual(parseQuery(PageQuery, "page=-3"), { page: -3 });
});

test("a text that is no whole number stays text, so that the check can name it", () => {
  for (const text of ["", "x", "1.5", "1e3", "0x10", "+1", "9".repeat(16), " 1"]) {
    assert.deepEqual(parseQuery(PageQuery, `page=${encodeURIComponent(text)}`), { page: text });
  }
});

test("texts are decoded once, and a number stays text where text is wanted", () => {
  assert.deepEqual(parseQuery(DownloadQuery, "path=%2Fa%20b%2B%2525&archive=tar"), { path: "/a b+%25", archive: "tar" });
  assert.deepEqual(parseQuery(DownloadQuery, "path=5"), { path: "5" });
  assert.deepEqual(parseQuery(DownloadQuery, "path=/one&path=/two"), { path: "/one" });
});

test("only an origin of the list is allowed, compared whole", () => {
  const allowed = ["https://a.example"];
  assert.equal(cors(allowed, "https://a.example")["access-control-allow-origin"], "https://a.example");
  for (const origin of ["", "null", "https://a.example.evil", "http://a.example", "https://a.example:8443", "https://A.example"]) {
    assert.deepEqual(cors(allowed, origin), { vary: "origin" });
  }
});

test("a star in the list allows every origin by its own name", () => {
  assert.equal(cors(["*"], "https://b.example")["access-control-allow-origin"], "https://b.example");
  assert.deepEqual(cors(["*"], ""), { vary: "origin" });
});

test("every status of the API has a line with a reason", () => {
  for (const status of [200, 201, 204, ...Object.values(statusOf)]) assert.match(statusLine(status), new RegExp(`^${status} [A-Z]`));
  assert.equal(statusLine(799), "799");
});
