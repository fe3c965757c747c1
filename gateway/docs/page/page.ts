/** The reference page: openapi.json rendered for people. Works without scripts, and in print. */
import { type ErrorCode, errorCodes, statusOf } from "../../../shared/errors.ts";
import { type Html, html } from "../../../shared/util/html.ts";
import { meanings } from "../common.ts";
import type { Document } from "../document.ts";
import { type DocumentedRoute, isDocumented, type RouteFacts } from "../operation.ts";
import { environment } from "./curl.ts";
import { fieldsTable } from "./fields.ts";
import { coloured, prose, snippet, words } from "./html.ts";
import { badge, idOf, renderOperation } from "./operation.ts";

const mark = html`<svg class="mark" viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><rect class="mark-ground" width="32" height="32" rx="7"/><path class="mark-arch" d="M8 25V15a8 8 0 0 1 16 0v10h-4.5V15a3.5 3.5 0 0 0-7 0v10z"/><path class="mark-post" d="M14.75 25v-6.5h2.5V25z"/></svg>`;

/** Renders the page of a document generated from these routes. */
export function renderPage(document: Document, routes: readonly RouteFacts[]): string {
  const documented = routes.filter(isDocumented);
  const groups = document.tags.map((tag) => ({ ...tag, id: slug(tag.name), routes: documented.filter(({ docs }) => docs.tag === tag.name) }));
  const page = html`<!doctype html>
<html lang="en" data-theme="auto">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>API reference · Sandgate</title>
    <link rel="icon" type="image/svg+xml" href="/favicon.svg">
    <script src="/assets/theme-boot.ts"></script>
    <link rel="stylesheet" href="/assets/docs.css">
    <script type="module" src="/assets/docs.ts"></script>
  </head>
  <body>
    <div class="shell docs">
      <a class="skip-link" href="#content">Skip to content</a>
      <header class="top-bar">${wordmark}</header>
      <aside class="sidebar" id="sidebar">
        ${wordmark}
        <nav class="docs-nav" aria-label="Calls">
          <ul class="docs-general"><li><a href="#introduction">Introduction</a></li><li><a href="#errors">Errors</a></li><li><a href="#objects">Objects</a></li></ul>
          ${groups.map(navGroup)}
        </nav>
        <div class="sidebar-end"><ul class="docs-links"><li><a href="/">Dashboard</a></li><li><a href="/openapi.json">openapi.json</a></li></ul></div>
      </aside>
      <div class="scrim" hidden></div>
      <main class="content" id="content" tabindex="-1">
        <div class="docs-page">
          ${introduction(document)}
          ${groups.map(
            ({ id, name, description, routes: calls }) => html`<section class="group" aria-labelledby="${id}">
            <div class="group-head"><h2 id="${id}">${name}</h2><p>${description}</p></div>
            ${calls.map((route) => renderOperation(document, route))}</section>`,
          )}
          ${errors()}
          ${objects(document)}
        </div>
      </main>
    </div>
  </body>
</html>
`;
  return page.text;
}

const slug = (name: string): string => name.toLowerCase().replaceAll(" ", "-");
const wordmark = html`<a class="wordmark" href="#introduction">${mark}<span>Sandgate</span> <span class="wordmark-more">API</span></a>`;

function navGroup({ id, name, routes }: { id: string; name: string; routes: readonly DocumentedRoute[] }): Html {
  const links = routes.map((route) => html`<li><a href="#${idOf(route)}"><span>${route.docs.summary}</span>${badge(route.method)}</a></li>`);
  return html`<h2 class="docs-nav-title"><a href="#${id}">${name}</a></h2><ul>${links}</ul>`;
}

function introduction({ info }: Document): Html {
  return html`<section class="introduction" aria-labelledby="introduction">
    <h1 id="introduction">API reference</h1>
    <p class="docs-lead">${info.summary} <span class="badge">Version ${info.version}</span></p>
    <div class="call-parts">
      <div class="call-words">${prose(info.description)}</div>
      <div class="call-code"><h4>For the examples</h4>${snippet("Environment for the examples", environment)}
        <h4>An error <span class="status bad">404</span></h4>${snippet("An error", coloured(errorExample))}</div>
    </div>
  </section>`;
}

const errorExample = {
  error: { code: "not_found", reason: "no_such_sandbox", message: "Sandbox not found: sb_…", request_id: "req_01k9zqb7c8d9e0f1g2h3j4k5m6" },
};

function errors(): Html {
  const row = (code: ErrorCode): Html =>
    html`<tr><td class="number">${statusOf[code]}</td><th scope="row"><code>${code}</code></th><td>${words(meanings[code])}</td></tr>`;
  return html`<section class="group" aria-labelledby="errors"><div class="group-head"><h2 id="errors">Errors</h2><p>All error codes.</p></div>
    <div class="table-frame"><table class="fields codes"><caption class="visually-hidden">Error codes</caption>
      <thead><tr><th scope="col">Status</th><th scope="col">Code</th><th scope="col">Meaning</th></tr></thead><tbody>${errorCodes.map(row)}</tbody></table></div></section>`;
}

function objects({ components }: Document): Html {
  const schemas = components.schemas ?? {};
  const named = Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  return html`<section class="group" aria-labelledby="objects"><div class="group-head"><h2 id="objects">Objects</h2><p>The objects in answers.</p></div>
    ${named.map(
      ([
        name,
        schema,
      ]) => html`<section class="object" id="schema-${name}" aria-labelledby="schema-${name}-title"><h3 id="schema-${name}-title"><a class="anchor" href="#schema-${name}">${name}</a></h3>
      ${schema.description ? prose(String(schema.description)) : undefined}
      ${Array.isArray(schema.enum) ? html`<p>${schema.enum.map((value) => html`<code>${String(value)}</code> `)}</p>` : fieldsTable(schemas, schema, `Fields of ${name}`)}</section>`,
    )}</section>`;
}
