/** Host names and addresses with an optional port, as in the `Host` header and in URLs. */

const form = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9_.-]{0,253}))(?::(\d{1,5}))?$/i;

/**
 * Splits a host into name and port. The name is normalized as browsers do: lower case, no trailing dot, addresses in their
 * shortest form. Undefined if the text is not a host.
 */
export function hostAndPort(text: string): { readonly name: string; readonly port: number | undefined } | undefined {
  const port = form.exec(text)?.[1];
  if (!form.test(text) || Number(port ?? 0) > 65_535) return undefined;
  const host = port === undefined ? text : text.slice(0, -port.length - 1);
  const url = `http://${host.replace(/\.$/, "")}`;
  return URL.canParse(url) ? { name: new URL(url).hostname, port: port === undefined ? undefined : Number(port) } : undefined;
}

/** A host with a port, as URLs have it. */
export const withPort = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** Whether a host is this machine alone. */
export const isLoopback = (host: string): boolean => /^(127\..*|::1|localhost)$/.test(host);

/** An address at which this machine reaches what listens on `host`. */
export const reachedHere = (host: string): string => ({ "0.0.0.0": "127.0.0.1", "::": "::1" })[host] ?? host;
