/** Messages that are almost valid: over HTTP, WebSockets and NATS. They get clean refusals, end no process and cost no memory. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { subjects } from "../../shared/bus/subjects.ts";
import { Api } from "../helpers/api.ts";
import { connectBus } from "../helpers/bus.ts";
import { fixture } from "../helpers/fixture.ts";
import { HostileWorker } from "../helpers/hostile.ts";
import { Connection } from "../helpers/raw-http.ts";
import { plain, usable } from "../helpers/resilience.ts";
import { connect } from "../helpers/sessions.ts";
import { startStack } from "../helpers/stack.ts";
import { until } from "../helpers/until.ts";
import { Witness } from "../helpers/witness.ts";
import { assertMemoryAsBefore, memoryOf } from "./inventory.ts";
import { mutated } from "./mutations.ts";
import { between, oneOf, plan, randomFor } from "./plan.ts";

const requests = 3_000;
const sockets = 300;
const messages = 5_000;
const atOnce = 16;
/** How long an answer to what may be the beginning of a longer message is waited for. */
const silenceMs = 500;

// Streams go over NATS, as between machines.
const stack = await fixture(startStack({ name: "fuzz", settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_LINES_DIR: "" } }));
const api = new Api(stack);
const victim = await api.create();
const memory = memoryOf(stack);

after(() => console.log(`fuzzed by seed ${plan.seed}; again by: npm run test:faults -- --seed ${plan.seed}`));

/** Carries out a number of attempts, a few at once. */
async function tryAll(count: number, attempt: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await attempt(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** Names the suspects. */
async function failEnded(latest: readonly string[]): Promise<never> {
  await until("the gateway's end is known", () => stack.gateway.readyLine === undefined);
  assert.fail(
    `the gateway has ended:\n${stack.gateway.lines.slice(-3).join("\n")}\nafter one of\n${latest
      .slice(-2 * atOnce)
      .map((text) => JSON.stringify(text))
      .join("\n")}`,
  );
}

const head = (line: string, more: string): string => `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${stack.apiKey}\r\n${more}`;
const json = (line: string, body: object): [string, string] => {
  const text = JSON.stringify(body);
  return [head(line, `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`), text];
};
const multipart = `--b\r\ncontent-disposition: form-data; name="path"\r\n\r\n/root/f\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--b--\r\n`;
/** Heads and bodies of valid requests. */
const valid: readonly [head: string, body: string][] = [
  [head("GET /v1/sandboxes/list?page=1&page_size=20", "\r\n"), ""],
  [head(`GET /v1/sandboxes/${victim}`, "\r\n"), ""],
  [head(`GET /v1/sandboxes/${victim}/download?path=/etc/passwd`, "\r\n"), ""],
  [head(`GET /v1/sandboxes/logs?sandbox_id=${victim}&limit=10`, "\r\n"), ""],
  json(`POST /v1/sandboxes/${victim}/execute`, { command: "echo hello", timeout: 5, env: { A: "b" }, working_dir: "/root" }),
  json(`POST /v1/sandboxes/${victim}/execute_async`, { command: "echo hello", timeout: 5 }),
  json("POST /v1/auth/login", { email: "ada@example.com", password: "correct horse battery" }),
  json("POST /v1/sandboxes/create", { image: "default", name: "x", resources: { cpus: 0 }, env_vars: { A: "b" }, network: { access: "none" } }),
  [head(`POST /v1/sandboxes/${victim}/upload`, `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${multipart.length}\r\n\r\n`), multipart],
  [
    head(`POST /v1/sandboxes/${victim}/upload?path=/root/g`, "content-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n\r\n"),
    "5\r\nhello\r\n0\r\n\r\n",
  ],
];

test("thousands of almost valid HTTP requests get clean refusals", async () => {
  const witness = await Witness.begin(stack, api);
  const random = randomFor("HTTP");
  const answers = new Map<string, number>();
  /** To tell which of them has ended the gateway. */
  const latest: string[] = [];
  await tryAll(requests, async () => {
    const [start, body] = oneOf(random, valid) as [string, string];
    // Half of them keep their head, so that the body is looked at.
    const bytes = random() < 0.5 ? mutated(random, Buffer.from(start + body)) : Buffer.concat([Buffer.from(start), mutated(random, Buffer.from(body))]);
    latest.push(bytes.toString("latin1"));
    using connection = await Connection.open(stack.url).catch(() => failEnded(latest));
    const answer = connection.send(bytes).answer({ hasBody: false });
    const status = await Promise.race([
      answer.then(
        ({ status }) => String(status),
        () => "closed",
      ),
      sleep(silenceMs, "no answer yet"),
    ]);
    assert.doesNotMatch(status, /^50[0246789]|NaN/, `${status} to ${JSON.stringify(bytes.toString("latin1"))}`);
    answers.set(status, (answers.get(status) ?? 0) + 1);
  });
  console.log(
    `HTTP: ${[...answers]
      .sort()
      .map(([status, count]) => `${status}: ${count}`)
      .join(", ")}`,
  );
  await witness.end();
  assertMemoryAsBefore(stack, memory);
});

test("hundreds of sessions whose frames are almost valid end cleanly", async () => {
  const witness = await Witness.begin(stack, api);
  const random = randomFor("WebSockets");
  const texts = [
    { type: "start", command: "cat", tty: false },
    { type: "start", command: "cat", tty: true, cols: 80, rows: 24, env: { A: "b" } },
    { type: "attach", session_id: "sess_01m84wbcfsvz394q4pa6mhts3t", since: 0 },
    { type: "resize", cols: 80, rows: 24 },
    { type: "ack", offset: 10 },
    { type: "signal", signal: "INT" },
  ].map((message) => Buffer.from(JSON.stringify(message)));
  const ends = new Map<string, number>();
  await tryAll(sockets, async () => {
    const client = await connect(api, victim).catch(() => undefined);
    if (!client) return;
    client.isAcking = false;
    if (random() < 0.5) client.send({ type: "start", command: "cat", tty: false });
    for (let left = between(random, 1, 8); left > 0 && !client.close; left--) {
      const roll = random();
      if (roll < 0.6) client.ws.send(mutated(random, oneOf(random, texts) as Buffer), { binary: false });
      else if (roll < 0.8) client.ws.send(mutated(random, Buffer.from("\0some input")), { binary: true });
      // Frames that are none.
      else
        (client.ws as unknown as { _socket: { write(bytes: Uint8Array): void } })._socket.write(
          mutated(random, Buffer.from("\x81\x85\x01\x02\x03\x04abcde", "latin1")),
        );
      await sleep(random() * 20);
    }
    const end = client.close ? String(client.close.code) : "open";
    ends.set(end, (ends.get(end) ?? 0) + 1);
    client.cut();
  });
  console.log(
    `WebSockets: ${[...ends]
      .sort()
      .map(([code, count]) => `${code}: ${count}`)
      .join(", ")}`,
  );
  await witness.end();
  assertMemoryAsBefore(stack, memory);
});

test("thousands of almost valid messages of a worker and of a gateway end no process", async () => {
  await using gateway = await connectBus(stack.natsUrl, "test-fuzz");
  await using worker = await HostileWorker.open(stack.natsUrl);
  const heard = new Map<string, Uint8Array>();
  const listening = gateway.connection.subscribe("sandgate.>", {
    callback: (error, message) => void (error ?? heard.set(message.subject, message.data)),
  });
  const second = await api.create();
  await api.execute(second, "echo hello");
  await api.raw("POST", `/v1/sandboxes/${second}/upload?path=/root/f`, "text", { "content-type": "application/octet-stream" });
  await (await api.raw("GET", `/v1/sandboxes/${second}/download?path=/root/f`)).arrayBuffer();
  await api.call("GET", `/v1/sandboxes/${second}/status`);
  await api.delete(second);
  await until("messages of workers and gateways were heard", () => heard.size > 10);
  listening.unsubscribe();
  const random = randomFor("NATS");
  const isPresence = ([subject]: readonly [string, Uint8Array]): boolean => subject.startsWith(subjects.presence(""));
  const say = async (valid: readonly [string, Uint8Array][], count: number): Promise<void> => {
    for (let left = count; left > 0; left--) {
      const [subject, data] = oneOf(random, valid) as [string, Uint8Array];
      const payload = mutated(random, data);
      for (const { connection } of random() < 0.5 ? [gateway] : worker.all) connection.publish(subject, payload, { reply: `${subjects.inbox("nobody")}.1` });
      if (left % 500 === 0) await gateway.connection.flush();
    }
    await gateway.connection.flush();
    await worker.flush();
  };
  const valid = [...heard];
  await say(
    valid.filter((one) => !isPresence(one)),
    messages,
  );
  await usable(api, victim);
  const witness = await Witness.begin(stack, api);
  await witness.end();
  assertMemoryAsBefore(stack, memory);
  const pids = [stack.nats, stack.worker, stack.gateway].map(({ pid }) => pid);
  // Who says of itself that it was replaced is believed, so that nothing works afterwards.
  await say(valid.filter(isPresence), messages / 10);
  assert.ok((await fetch(`${stack.url}/healthz`)).ok);
  assert.deepEqual(
    [stack.nats, stack.worker, stack.gateway].map(({ readyLine, pid }) => readyLine && pid),
    pids,
  );
});
