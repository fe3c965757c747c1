/** Code to be read and copied. */
import { type Html, html } from "./html.ts";

const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d[\d.]*\b/g;

/** Code with a name; the page's script puts a button beside it that copies it. */
export function snippet(label: string, code: Html | string): Html {
  return html`<div class="snippet" data-copy="${label}"><pre tabindex="0" aria-label="${label}"><code>${code}</code></pre></div>`;
}

/** JSON with its parts told apart by colour. */
export function coloured(value: unknown): Html {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  const parts: (Html | string)[] = [];
  let at = 0;
  for (const match of text.matchAll(tokens)) {
    const [token, string, colon] = match;
    parts.push(text.slice(at, match.index), html`<span class="${colon ? "json-name" : string ? "json-text" : "json-value"}">${string ?? token}</span>${colon}`);
    at = match.index + token.length;
  }
  return html`${parts}${text.slice(at)}`;
}
