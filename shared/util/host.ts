/** Host names and addresses with a port, as the `Host` header has them. */

const form = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9_.-]{0,253}))(?::(\d{1,5}))?$/i;

/**
 * Name and port apart, the name in the one form that browsers give it: lower case, without a dot at its end, addresses
 * as short as they can be. Undefined for what is none.
 */
export function hostAndPort(text: string): { readonly name: string; readonly port: number | undefined } | undefined {
  const port = form.exec(text)?.[1];
  if (!form.test(text) || Number(port ?? 0) > 65_535) return undefined;
  const host = port === undefined ? text : text.slice(0, -port.length - 1);
  const url = `http://${host.replace(/\.$/, "")}`;
  return URL.canParse(url) ? { name: new URL(url).hostname, port: port === undefined ? undefined : Number(port) } : undefined;
}
