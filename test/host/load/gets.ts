/** Makes the same GET call many times on a few connections: URL, API key, count. Prints how the calls ended, as JSON. */
import { Agent, get, type IncomingMessage } from "node:http";

const connections = 20;
const [url = "", key = "", count = "0"] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: connections });
const ends: Record<string, number> = {};
let left = Number(count);

const call = (): Promise<string> =>
  new Promise((resolve) => {
    const request = get(url, { agent, headers: { "x-api-key": key } }, (answer: IncomingMessage) => {
      answer.resume().on("end", () => resolve(String(answer.statusCode)));
      answer.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
    request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });

async function client(): Promise<void> {
  while (left-- > 0) {
    const end = await call();
    ends[end] = (ends[end] ?? 0) + 1;
  }
}

await Promise.all(Array.from({ length: connections }, client));
console.log(JSON.stringify(ends));
