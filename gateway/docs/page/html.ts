/** Pieces of the reference's pages. */
import { type Html, html } from "../../../shared/util/html.ts";

/** Text with `code` spans. */
export function words(markdown: string): Html {
  return html`${markdown.split("`").map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))}`;
}

/** Paragraphs with `code` spans. */
export function prose(markdown: string): Html {
  return html`${markdown.split("\n\n").map((paragraph) => html`<p>${words(paragraph)}</p>`)}`;
}

const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d[\d.]*\b/g;

/** A labelled code sample. The page's script adds a copy button. */
export function snippet(label: string, code: Html | string): Html {
  return html`<div class="snippet" data-copy="${label}"><pre tabindex="0" aria-label="${label}"><code>${code}</code></pre></div>`;
}

/** JSON with syntax highlighting. */
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
