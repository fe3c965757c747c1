/** Live sessions, as far as OpenAPI can describe them: the upgrade is a call, and the protocol after it is prose. */

import { Sessions, SessionToken } from "../../../shared/schemas/sessions.ts";
import {
  closeReasons,
  detachTimeoutDefaultS,
  detachTimeoutMaxS,
  frameBytesMax,
  pingMs,
  subprotocol,
  windowBytes,
} from "../../../shared/stream/session/protocol.ts";
import { ids, times } from "../examples.ts";
import { largeAnswer, notRunning } from "../failures.ts";
import { ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Live sessions");
const closes = Object.values(closeReasons).map(({ code, meaning }) => `\`${code}\`: ${meaning}.`);
const KiB = 1024;

export const open = operation({
  name: "openSession",
  summary: "Open a live session",
  description: `A WebSocket with the subprotocol \`${subprotocol}\`. Text frames are JSON messages, binary frames are bytes, at most ${frameBytesMax / KiB} KiB each. Logged-in browsers use their cookie; other clients send \`x-api-key\`, or a \`token\` from the call below.

The client's first message is \`{"type":"start"}\` with any of \`command\` (the login shell when absent), \`tty\`, \`cols\`, \`rows\`, \`env\`, \`working_dir\`, \`detach_timeout\`, \`timeout\` (seconds until it is killed, with exit code 124); or \`{"type":"attach","session_id":"…"}\` with any of \`since\` (replay output from this offset on), \`takeover\` (become the writer in place of the current one), \`read_only\`. Later it may send \`resize\` with \`cols\` and \`rows\`, \`signal\` with \`signal\`, \`stdin_close\`, \`ack\` with \`offset\`, \`kill\` and \`detach\`.

The server answers \`{"type":"started","session_id","tty","cols","rows","writer","offset","output_offset","input_offset","detach_timeout"}\`, then output. Output before \`output_offset\` is a replay: do not send a terminal's replies to queries in it, because the program running now would receive them as input. \`{"type":"gap","from","to"}\` reports output that is no longer kept, \`{"type":"input_ack","offset"}\` how much input the program has received, and \`{"type":"resize","cols","rows"}\` tells readers the new size of the terminal. Exactly one \`{"type":"exit","exit_code","signal"}\` comes at the end, or \`{"type":"error","code","message"}\` before the socket is closed.

An output frame is one byte of channel (1 standard output or terminal, 2 standard error), eight bytes of offset (big-endian: the position of the first byte in the session's output), then the bytes. An input frame is one byte 0, then bytes.

A session outlives its last socket for \`detach_timeout\` seconds, ${detachTimeoutDefaultS} by default and ${detachTimeoutMaxS} at most. It has one writer and any number of readers. A client that leaves ${windowBytes / KiB} KiB without \`ack\` is paused, without affecting other clients. The server pings every ${pingMs / 1_000} seconds.

The socket closes with 4000 plus the HTTP status of the error's code, or with one of these codes. ${closes.join(" ")}`,
  of: "sandbox",
  query: { token: "sgt_gw_01k9zpt0v1w2x3y4z5a6b7c8d9_J2v8Qm0yTz5Kc1nR7eUoXhL4sWbG9dPfA3iEjYkZqMw" },
  success: { status: 101, description: "The connection is now a WebSocket.", content: [] },
  failures: notRunning,
  program: `import { Sandgate } from "sandgate/client";

const client = new Sandgate(); // SANDGATE_URL, SANDGATE_API_KEY
await using sandbox = await client.sandboxes.create(); // or .get(id)
const session = await sandbox.session({ command: "read -r name; echo hello $name", tty: true });
await session.write("world\\n");
for await (const { bytes } of session) process.stdout.write(bytes);
const { exit_code } = await session.exited;
console.log("exit code", exit_code);`,
});

export const token = operation({
  name: "createSessionToken",
  summary: "Create a token for one WebSocket",
  description:
    "For web pages and people who cannot send a key. The token opens one WebSocket of this sandbox, within 60 seconds, through any gateway. With `read_only` the WebSocket can only read; with `session_id` it can only attach to this session.",
  of: "sandbox",
  body: { read_only: true },
  success: ok("Pass `token` as a query parameter of the WebSocket URL.", SessionToken, {
    token: "sgt_gw_01k9zpt0v1w2x3y4z5a6b7c8d9_J2v8Qm0yTz5Kc1nR7eUoXhL4sWbG9dPfA3iEjYkZqMw",
    expires_at: times.now,
  }),
});

export const list = operation({
  name: "listSessions",
  summary: "List the live sessions of a sandbox",
  description: "Sessions that can be attached to, newest first: those whose command runs, or ended while no client was attached.",
  of: "sandbox",
  success: ok("The sessions.", Sessions, {
    data: [{ session_id: ids.session, command: "python3", tty: true, created_at: times.made, attached: 1, status: "running" }],
  }),
  failures: largeAnswer,
});
