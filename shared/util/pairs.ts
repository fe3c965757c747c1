/** Lists such as `team=infra,region=north%20west`, as the variables of OpenTelemetry have them: values are percent-encoded. */

/** @returns undefined where an item is no pair */
export function readPairs(text: string): [name: string, value: string][] | undefined {
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
  const pairs = items.map(readPair);
  return pairs.includes(undefined) ? undefined : (pairs as [string, string][]);
}

function readPair(item: string): [string, string] | undefined {
  const at = item.indexOf("=");
  const name = item.slice(0, at).trim();
  if (at < 1 || name === "") return undefined;
  try {
    return [name, decodeURIComponent(item.slice(at + 1).trim())];
  } catch {
    return undefined;
  }
}
