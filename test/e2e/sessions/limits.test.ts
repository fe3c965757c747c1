/** Bounds on live sessions that an operator sets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { windowBytes } from "../../../shared/stream/session/protocol.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { attach, connect, Refused, type SessionClient, start } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const perSandbox = 3;
const perAccount = 5;
const sockets = 6;
/** Longer than any of the other tests leaves a session alone on a busy machine. */
const idleS = 12;

const settings = {
  SANDGATE_SESSIONS_PER_SANDBOX: `${perSandbox}`,
  SANDGATE_SESSIONS_PER_ACCOUNT: `${perAccount}`,
  SANDGATE_SESSION_SOCKETS_MAX: `${sockets}`,
  SANDGATE_SESSION_IDLE_MS: `${idleS * 1_000}`,
  SANDGATE_SESSION_DETACH_MAX_MS: "20000",
};
const stack = await fixture(startStack({ name: "session-limits", settings }));
const api = new Api(stack);
const id = await api.create();

async function end(...clients: SessionClient[]): Promise<void> {
  for (const client of clients) client.send({ type: "kill" });
  for (const client of clients) await client.closed();
}

/** The client of a session that was refused. */
async function refused(sandboxId: string): Promise<SessionClient> {
  const client = await connect(api, sandboxId);
  client.send({ type: "start", command: "cat" });
  assert.equal((await client.closed()).code, 4429);
  return client;
}

test("more sessions than a sandbox may have are refused, until one of them ends", async () => {
  const clients = await Promise.all(Array.from({ length: perSandbox }, () => start(api, id, { command: "cat" })));
  assert.match((await refused(id)).error?.message ?? "", /the sandbox already has 3 sessions/);
  await end(clients[0] as SessionClient);
  const again = await start(api, id, { command: "cat" });
  await end(again, ...clients.slice(1));
});

test("more sessions than an account may have are refused, in whichever sandbox", async () => {
  const other = await api.create();
  const clients = await Promise.all([id, id, id, other, other].map((sandbox) => start(api, sandbox, { command: "cat" })));
  assert.match((await refused(other)).error?.message ?? "", /the account already has 5 sessions/);
  await end(...clients);
  await end(await start(api, other, { command: "cat" }));
});

test("a gateway takes no more WebSockets than it is told to, and takes others when some are closed", async () => {
  const clients = await Promise.all(Array.from({ length: sockets }, () => connect(api, id)));
  const failure = await connect(api, id).catch((error: unknown) => error);
  assert.ok(failure instanceof Refused);
  assert.deepEqual([failure.status, failure.body.error.code], [503, "unavailable"]);
  for (const client of clients) client.ws.close();
  await Promise.all(clients.map((client) => client.closed()));
  await end(await start(api, id, { command: "cat" }));
});

test("a session without input and output for the time that is set is ended, and says so; one that is used is not", async () => {
  const idle = await start(api, id, { command: "cat" });
  const typed = await start(api, id, { command: "cat > /dev/null; echo typed" });
  const talking = await start(api, id, { command: "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo $i; sleep 0.7; done" });
  const typing = setInterval(() => typed.type("x\n"), 500);
  await idle.closed();
  assert.deepEqual(idle.exit, { type: "exit", exit_code: 137, signal: "SIGKILL", reason: `there was no input and no output for ${idleS} s` });
  await talking.closed();
  assert.deepEqual(talking.exit, { type: "exit", exit_code: 0 });
  clearInterval(typing);
  typed.send({ type: "stdin_close" });
  await typed.closed();
  assert.deepEqual([typed.text[1], typed.exit], ["typed\n", { type: "exit", exit_code: 0 }]);
});

test("a session may outlive its sockets no longer than is allowed", async () => {
  const client = await connect(api, id);
  client.send({ type: "start", command: "cat", detach_timeout: 21 });
  assert.equal((await client.closed()).code, 4400);
  assert.match(client.error?.message ?? "", /detach_timeout must be between 0 and 20 /);
  // Without a word about it, it is what is allowed.
  const silent = await start(api, id, { command: "cat" });
  await end(silent);
});

test("a session that is killed ends though its client takes no more output; it counts until the client goes", async () => {
  const client = await connect(api, id);
  client.isAcking = false;
  client.send({ type: "start", command: "yes" });
  await client.ready();
  await until("there is more output than it may take", () => client.next === windowBytes);
  client.send({ type: "kill" });
  const listed = async (): Promise<string[]> => {
    const { body } = await api.call<{ data: { session_id: string; status: string }[] }>("GET", `/v1/sandboxes/${id}/sessions`);
    return body.data.flatMap(({ session_id, status }) => (session_id === client.id ? [status] : []));
  };
  for (let status = await listed(); status[0] !== "ended"; status = await listed()) assert.deepEqual(status, ["running"]);
  const others = await Promise.all([1, 2].map(() => start(api, id, { command: "cat" })));
  await refused(id);
  client.cut();
  const back = await attach(api, id, { session_id: client.id, since: client.next });
  assert.equal((await back.closed()).code, 1000);
  assert.deepEqual([back.exit?.exit_code, back.holes], [137, []]);
  await end(...others, await start(api, id, { command: "cat" }));
});
