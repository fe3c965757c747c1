/** Pure functions of the gateway's HTTP side. */
import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { parseQuery } from "../../../../gateway/api/route.ts";
import { statusLine } from "../../../../gateway/http/exchange.ts";
import { Hosts } from "../../../../gateway/http/hosts.ts";
import { cors } from "../../../../gateway/http/server.ts";
import { statusOf } from "../../../../shared/errors.ts";
import { PageQuery } from "../../../../shared/schemas/fields.ts";
import { DownloadQuery } from "../../../../shared/schemas/files.ts";

test("a query becomes an object, numbers as numbers, less the key", () => {
  assert.deepEqual(parseQuery(PageQuery, "page=2&page_size=50&api_key=sg_x"), { page: 2, page_size: 50 });
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
});

test("a parameter that is not known, or comes twice, is refused by name", () => {
  for (const query of ["other=1", "page=1&other", "Page=1", "constructor=1", "=1"])
    assert.throws(() => parseQuery(PageQuery, query), /^SandgateError: Unknown query parameter: /);
  for (const query of ["path=/one&path=/two", "path=/one&%70ath=/one", "path=/one&api_key=a&api_key=b"]) {
    assert.throws(() => parseQuery(DownloadQuery, query), /^SandgateError: the query parameter \w+ must come only once/);
  }
});

test("a gateway is called by its names, with a port or without, and by nobody else's", () => {
  const hosts = new Hosts({
    host: "0.0.0.0",
    metricsHost: "metrics.example",
    publicUrl: "https://Sandboxes.example:8443/x",
    allowedHosts: ["Other.example", "[2001:db8::1]", "fixed.example:8080"],
  });
  for (const host of ["localhost", "LocalHost:1", "localhost.", "127.0.0.1:65535", "[::1]", "[0:0:0:0:0:0:0:1]:8080", "0.0.0.0:80"]) hosts.refuseForeign(host);
  for (const host of [
    "sandboxes.example",
    "sandboxes.example:8443",
    "SANDBOXES.example.:80",
    "other.example:99",
    "[2001:db8::1]:80",
    "fixed.example:8080",
    "metrics.example:9464",
  ])
    hosts.refuseForeign(host);
  for (const addresses of Object.values(networkInterfaces()))
    for (const { address, family } of addresses ?? []) hosts.refuseForeign(family === "IPv6" ? `[${address}]:80` : `${address}:80`);
  const foreign = [
    "",
    "evil.example",
    "localhost.evil.example",
    "evil.localhost",
    "127.0.0.1.evil.example",
    "192.0.2.1",
    "[2001:db8::2]",
    "fixed.example",
    "fixed.example:80",
    "localhost:99999",
    "localhost:",
    "localhost:80:80",
    "localhost, evil.example",
    "user@localhost",
    "localhost/x",
    "local host",
    "sandboxes.example.evil",
  ];
  for (const host of foreign)
    assert.throws(() => hosts.refuseForeign(host), /^SandgateError: Host .* is not a name of this gateway; set SANDGATE_ALLOWED_HOSTS$/, host);
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
