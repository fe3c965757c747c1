/**
 * One client of a session, on whatever machine there is Node.js: `node session.mjs URL PROTOCOL FIRST STEP…`. It sends the first
 * message, takes one step after the other, and prints as JSON the started message, all output, and the exit message if there is one.
 *
 * A step is `{"type": text}`, `{"see": text}`, counted from the last that was seen, `{"say": message}` or `{"end": true}`.
 */
const [url, protocol, first, ...steps] = process.argv.slice(2);
const timeoutMs = 30_000;
const pollMs = 20;
const headerBytes = 9;

const socket = new WebSocket(url, protocol);
socket.binaryType = "arraybuffer";
let output = "";
let seen = 0;
const messages = [];
let closed;
socket.onmessage = ({ data }) => {
  if (typeof data === "string") messages.push(JSON.parse(data));
  else output += Buffer.from(data).toString("latin1", headerBytes);
};
socket.onclose = ({ code, reason }) => {
  closed = `${code} ${reason}`;
};

const of = (type) => messages.find((message) => message.type === type);
const tell = (what) => JSON.stringify({ ...what, output, messages, closed });

async function until(what, isSo) {
  const endMs = Date.now() + timeoutMs;
  while (!isSo()) {
    if (Date.now() > endMs) throw new Error(tell({ missing: what }));
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

await until("a connection", () => socket.readyState === WebSocket.OPEN || closed !== undefined);
socket.send(first);
await until("a start", () => of("started") ?? closed);
for (const step of steps.map((text) => JSON.parse(text))) {
  if (step.type !== undefined) socket.send(Buffer.concat([Buffer.of(0), Buffer.from(step.type)]));
  if (step.say !== undefined) socket.send(JSON.stringify(step.say));
  if (step.end) await until("an end", () => closed !== undefined);
  if (step.see === undefined) continue;
  await until(step.see, () => output.includes(step.see, seen));
  seen = output.indexOf(step.see, seen) + step.see.length;
}
console.log(JSON.stringify({ started: of("started"), output, exit: of("exit"), error: of("error") }));
socket.close();
