/**
 * The only two environment variables that the client reads: `SANDGATE_URL`, the address of the gateway, and
 * `SANDGATE_API_KEY`. Browsers have neither.
 */
export function clientEnvironment(): { url: string | undefined; apiKey: string | undefined } {
  const { SANDGATE_URL: url, SANDGATE_API_KEY: apiKey } = globalThis.process?.env ?? {};
  return { url: url?.trim() || undefined, apiKey: apiKey?.trim() || undefined };
}
