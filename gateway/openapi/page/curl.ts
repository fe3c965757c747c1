/** Lines for curl that can be pasted: the address and the key come from the environment. */
import type { DocumentedRoute } from "../document.ts";
import { ids } from "../examples.ts";

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export function curlOf({ access, method, path, docs }: DocumentedRoute): string {
  const query = Object.entries(docs.query ?? {}).map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2F", "/").replaceAll("%3A", ":")}`);
  // What is sent as a file says it in the form, and a socket has its key in a header.
  const wanted = docs.file || docs.success.status === 101 ? [] : query;
  const address = path.replace(":id", docs.of ? ids[docs.of] : "") + (wanted.length > 0 ? `?${wanted.join("&")}` : "");
  const withMethod = method === "GET" || (method === "POST" && (docs.body || docs.curl)) ? [] : [`-X ${method}`];
  const lines = [
    [`curl -sS`, ...(docs.success.content.some(({ type }) => type === "application/x-ndjson") ? ["-N"] : []), ...withMethod, `"$SANDGATE_URL${address}"`].join(
      " ",
    ),
    ...headersFor(access, method),
    ...(docs.once ? [`-H "idempotency-key: $(uuidgen)"`] : []),
    ...(docs.body ? ["-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(docs.body))}`] : []),
    ...(docs.curl ? [docs.curl] : []),
  ];
  return lines.join(" \\\n  ");
}

function headersFor(access: DocumentedRoute["access"], method: string): string[] {
  if (access === "open") return [];
  if (access === "anyone") return method === "GET" ? [] : ["-c cookies.txt"];
  if (access !== "person") return [`-H "x-api-key: $SANDGATE_KEY"`];
  return ["-b cookies.txt", ...(method === "GET" ? [] : [`-H "x-csrf-token: $CSRF_TOKEN"`])];
}
