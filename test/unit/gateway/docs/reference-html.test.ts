/** The templates that the page of the reference is made of. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { coloured, prose, words } from "../../../../gateway/docs/page/html.ts";
import { html } from "../../../../shared/util/html.ts";

const hostile = `<img src=x onerror="alert('1')">&`;
const inert = "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;";

test("what is put into a template stays text", () => {
  assert.equal(html`<p title="${hostile}">${hostile}</p>`.text, `<p title="${inert}">${inert}</p>`);
  assert.equal(html`${[hostile, html`<b>${hostile}</b>`]}`.text, `${inert}<b>${inert}</b>`);
  assert.equal(words(`a \`${hostile}\``).text, `a <code>${inert}</code>`);
  assert.doesNotMatch(coloured({ [hostile]: hostile }).text, /<img/);
});

test("what is not there leaves nothing", () => {
  assert.equal(html`[${undefined}${false}${[]}]`.text, "[]");
  assert.equal(html`${0}`.text, "0");
});

test("paragraphs are told apart by an empty line", () => {
  assert.equal(prose("one\n\ntwo").text, "<p>one</p><p>two</p>");
});

test("the parts of JSON have colours, and its text stays the same", () => {
  const value = { name: "x", count: 1, none: null, text: 'a "b": 2' };
  const { text } = coloured(value);
  assert.match(text, /<span class="json-name">&quot;name&quot;<\/span>: <span class="json-text">&quot;x&quot;<\/span>/);
  assert.match(text, /<span class="json-value">null<\/span>/);
  const plain = text.replaceAll(/<[^>]+>/g, "").replaceAll("&quot;", '"');
  assert.equal(plain, JSON.stringify(value, undefined, 2));
});
