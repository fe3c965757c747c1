/** curl examples ready to paste: the URL, the key and the ids of earlier answers come from environment variables. */

import { ids, times, variables } from "../examples.ts";
import type { DocumentedRoute } from "../operation.ts";

/** The default address of a gateway. The page's script replaces it with the address that the page was loaded from. */
const usualAddress = "http://127.0.0.1:8080";

/** The variables that the reader sets once, before the first example. */
export const environment = [
  `export SANDGATE_URL=${usualAddress}`,
  "export SANDGATE_API_KEY=sg_…",
  "# Ids from earlier answers, for the examples that use them",
  "export SANDBOX=sb_… SNAPSHOT=snap_… KEY=key_…",
  "export WORKER=wk_… IMAGE=… # operators only",
  "# For calls that need a login: from the answer to “Log in”",
  "export ACCOUNT=acct_… CSRF_TOKEN=…",
].join("\n");

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** Times in the examples lie in the past, so they are left out of queries. */
const isPast = (value: string | number): boolean => Object.values<string | number>(times).includes(value);

export function curlOf({ access, method, path, docs }: DocumentedRoute): string {
  const wanted = Object.entries(docs.query ?? {}).filter(([, value]) => !isPast(value));
  const query = wanted.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2F", "/")}`);
  // File uploads send these values as form fields instead.
  const address = path.replace(":id", docs.of ? ids[docs.of] : "") + (query.length > 0 && !docs.file ? `?${query.join("&")}` : "");
  const withMethod = method === "GET" || (method === "POST" && (docs.body || docs.curl)) ? "" : ` -X ${method}`;
  const unbuffered = docs.success.content.some(({ type }) => type === "application/x-ndjson") ? " -N" : "";
  const lines = [
    `${docs.input ? `${docs.input} | ` : ""}curl -sS${unbuffered}${withMethod} "$SANDGATE_URL${fromShell(address)}"`,
    ...headersFor(access, method),
    ...(docs.once ? ['-H "idempotency-key: $(date +%s%N)"'] : []),
    ...(docs.body ? ["-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(docs.body))}`] : []),
    ...(docs.curl ? [docs.curl] : []),
  ];
  return lines.join(" \\\n  ");
}

function fromShell(address: string): string {
  return Object.entries(variables).reduce((text, [id, variable]) => text.replaceAll(id, variable), address);
}

function headersFor(access: DocumentedRoute["access"], method: string): string[] {
  if (access === "open") return [];
  if (access === "anyone") return method === "GET" ? [] : ["-c cookies.txt"];
  if (access !== "person") return [`-H "x-api-key: $SANDGATE_API_KEY"`];
  return ["-b cookies.txt -c cookies.txt", '-H "x-sandgate-account: $ACCOUNT"', ...(method === "GET" ? [] : [`-H "x-csrf-token: $CSRF_TOKEN"`])];
}
