/** Live sessions, as far as OpenAPI can tell of them: the upgrade is a call, what follows is in words. */

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
import { largeAnswer, noSandbox, notRunning } from "../failures.ts";
import { type OperationDocs, ok } from "../operation.ts";

const tag = "Live sessions";
const closes = Object.values(closeReasons).map(({ code, meaning }) => `\`${code}\`: ${meaning}.`);
const KiB = 1024;

export const open = {
  tag,
  name: "openSession",
  summary: "Open a live session",
  description: `A WebSocket with the subprotocol \`${subprotocol}\`. Text frames are JSON messages, binary frames are bytes, at most ${frameBytesMax / KiB} KiB each. Browsers that are logged in use their cookie; others send \`x-api-key\`, or a \`token\` from the call below.

The client's first message is \`{"type":"start"}\` with any of \`command\` (the login shell when absent), \`tty\`, \`cols\`, \`rows\`, \`env\`, \`working_dir\`, \`detach_timeout\`, \`timeout\` (seconds until it is ended, with exit code 124); or \`{"type":"attach","session_id":"…"}\` with any of \`since\` (replay output from this offset on), \`takeover\` (take the pen from its writer), \`read_only\`. Later it may send \`resize\` with \`cols\` and \`rows\`, \`signal\` with \`signal\`, \`stdin_close\`, \`ack\` with \`offset\`, \`kill\` and \`detach\`.

The server answers \`{"type":"started","session_id","tty","cols","rows","writer","offset","output_offset","input_offset","detach_timeout"}\`, then output. What comes before \`output_offset\` is shown once more: answers of a terminal to what programs asked in there would be typed into what runs now. \`{"type":"gap","from","to"}\` tells of output that is not kept any more, \`{"type":"input_ack","offset"}\` how much input the program has been given, \`{"type":"resize","cols","rows"}\` tells those who watch of a new size of the terminal. Exactly one \`{"type":"exit","exit_code","signal"}\` comes at the end, or \`{"type":"error","code","message"}\` before the socket is closed.

An output frame is one byte of channel (1 standard output or terminal, 2 standard error), eight bytes of offset (big-endian: where its first byte stands in the session's output), then bytes. An input frame is one byte 0, then bytes.

A session outlives its last socket for \`detach_timeout\` seconds, ${detachTimeoutDefaultS} by default and ${detachTimeoutMaxS} at most. It has one writer and any number of readers. A client that leaves ${windowBytes / KiB} KiB without \`ack\` is paused; that holds up no other. The server pings every ${pingMs / 1_000} seconds.

The socket closes with 4000 + the HTTP status of an error's code, or with one of these. ${closes.join(" ")}`,
  of: "sandbox",
  query: { token: "sgt_gw_01k9zpt0v1w2x3y4z5a6b7c8d9_J2v8Qm0yTz5Kc1nR7eUoXhL4sWbG9dPfA3iEjYkZqMw" },
  success: { status: 101, description: "The connection is a WebSocket from now on.", content: [] },
  failures: { ...noSandbox, ...notRunning },
  program: `import { Sandgate } from "sandgate/client";

const client = new Sandgate(); // SANDGATE_URL, SANDGATE_API_KEY
await using sandbox = await client.sandboxes.create(); // or .get(id)
const session = await sandbox.session({ command: "read -r name; echo hello $name", tty: true });
await session.write("world\\n");
for await (const { bytes } of session) process.stdout.write(bytes);
const { exit_code } = await session.exited;
console.log("exit code", exit_code);`,
} satisfies OperationDocs;

export const token = {
  tag,
  name: "createSessionToken",
  summary: "Make a token for one WebSocket",
  description:
    "For pages and people who cannot send a key: it opens one WebSocket of this sandbox, within 60 seconds, through any gateway. With `read_only` that can only watch; with `session_id` it can only attach to this session.",
  of: "sandbox",
  body: { read_only: true },
  success: ok("Put `token` into the query of the WebSocket's address.", SessionToken, {
    token: "sgt_gw_01k9zpt0v1w2x3y4z5a6b7c8d9_J2v8Qm0yTz5Kc1nR7eUoXhL4sWbG9dPfA3iEjYkZqMw",
    expires_at: times.now,
  }),
  failures: noSandbox,
} satisfies OperationDocs;

export const list = {
  tag,
  name: "listSessions",
  summary: "List the live sessions of a sandbox",
  description: "Those that can be attached to, newest first: whose command runs, or has ended while nobody was there to see it.",
  of: "sandbox",
  success: ok("The sessions.", Sessions, {
    data: [{ session_id: ids.session, command: "python3", tty: true, created_at: times.made, attached: 1, status: "running" }],
  }),
  failures: { ...noSandbox, ...largeAnswer },
} satisfies OperationDocs;
