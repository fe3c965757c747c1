/** Writing with backpressure. */
import { once } from "node:events";

/** Resolves when there is room for more output. */
export async function print(out: NodeJS.WriteStream, data: string | Uint8Array): Promise<void> {
  if (out.write(data) || out.destroyed) return;
  const settled = new AbortController();
  const how = { signal: settled.signal };
  await Promise.race([once(out, "drain", how), once(out, "close", how)]).finally(() => settled.abort());
}
