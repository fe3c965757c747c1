/** Calls over a real nats-server, and how they fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { NoResponder } from "../../../../shared/bus/failures.ts";
import { Bus } from "../../../../shared/bus/nats.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

const timeoutMs = 10_000;

const nats = await fixture(startNats());
const caller = await nats.connect();
const server = await nats.connect();

async function serve(subject: string, handler: (body: unknown) => Promise<unknown>): Promise<void> {
  server.serve(subject, (body) => handler(body));
  await server.connection.flush();
}

test("a call brings the handler's reply", async () => {
  await serve("echo", async (body) => body);
  assert.deepEqual(await caller.call("echo", { text: "ä\n" }, timeoutMs), { text: "ä\n" });
});

test("a call that nobody listens to fails at once and says that it was not carried out", async () => {
  await assert.rejects(caller.call("nobody", {}, timeoutMs), NoResponder);
});

test("a handler that does not answer in time is unavailable, which does not say that nothing was done", async () => {
  await serve("silent", () => new Promise(() => {}));
  await assert.rejects(
    caller.call("silent", {}, 100),
    (error) => error instanceof SandgateError && error.code === "unavailable" && !(error instanceof NoResponder),
  );
});

test("an answer that lay there unread while this process stood still is not too late", async () => {
  await serve("soon", async () => ({ text: "here" }));
  const answer = caller.call("soon", {}, 1_000);
  for (const endMs = performance.now() + 1_500; performance.now() < endMs; );
  assert.deepEqual(await answer, { text: "here" });
});

test("a handler's own error arrives with code, message and Retry-After", async () => {
  await serve("refuses", async () => {
    throw new SandgateError("rate_limited", "slowly", { retryAfterS: 9 });
  });
  await assert.rejects(caller.call("refuses", {}, timeoutMs), { code: "rate_limited", message: "slowly", retryAfterS: 9 });
});

test("a handler's defect tells the caller nothing", async () => {
  await serve("breaks", async () => {
    throw new Error("secret");
  });
  await assert.rejects(caller.call("breaks", {}, timeoutMs), (error: SandgateError) => error.code === "internal_error" && !/secret/.test(error.message));
});

test("a call larger than the server takes is refused and does not end the connection", async () => {
  const text = "x".repeat(2 * 1024 * 1024);
  await assert.rejects(caller.call("echo", { text }, timeoutMs), { code: "payload_too_large" });
  assert.ok(caller.connected);
});

test("an answer larger than the server takes is an error for its caller, and the next call is answered", async () => {
  await serve("wordy", async () => ({ text: "\u0001".repeat(1024 * 1024) }));
  await assert.rejects(caller.call("wordy", {}, timeoutMs), { code: "payload_too_large", message: /the answer/ });
  assert.deepEqual(await caller.call("echo", { text: "still here" }, timeoutMs), { text: "still here" });
});

test("an answer that is no JSON is the handler's defect", async () => {
  await serve("circular", async () => {
    const self: { self?: unknown } = {};
    self.self = self;
    return self;
  });
  await assert.rejects(caller.call("circular", {}, timeoutMs), { code: "internal_error" });
});

test("an error that quotes very much still arrives", async () => {
  await serve("quotes", async () => {
    throw new SandgateError("invalid_request", "\u0001".repeat(4 * 1024 * 1024));
  });
  await assert.rejects(caller.call("quotes", {}, timeoutMs), { code: "invalid_request" });
});

test("a message that is too large is refused to its sender, and one that nobody waits for is only logged", () => {
  const large = "x".repeat(2 * 1024 * 1024);
  assert.throws(() => caller.publish("anybody", Buffer.from(large)), { code: "payload_too_large" });
  caller.tell("anybody", { large });
  caller.tell("anybody", { number: 1n });
});

test("a subscriber that throws hears the next message all the same, and so do all others of its connection", async () => {
  const heard: string[] = [];
  server.subscribe("news", ({ data }) => {
    heard.push(Buffer.from(data).toString());
    throw new Error("of the subscriber");
  });
  await server.connection.flush();
  for (const word of ["one", "two"]) caller.publish("news", Buffer.from(word));
  await until("both", () => heard.length === 2);
  assert.deepEqual(await caller.call("echo", { text: "heard" }, timeoutMs), { text: "heard" });
});

test("a subscription that the server ends begins again by itself", async () => {
  await using own = await startNats();
  const denying = (subject: string): string => `authorization { users: [{ user: a, password: a, permissions: { subscribe: { deny: ["${subject}"] } } }] }`;
  const configured = async (subject: string, isSeen: () => Promise<boolean>): Promise<void> => {
    own.configure(denying(subject));
    await until(`${subject} is denied`, isSeen);
  };
  own.configure(denying("nothing"));
  const bus = await Bus.connect(own.url.replace("//", "//a:a@"), "test", quiet);
  let heard = 0;
  bus.subscribe("news", () => void heard++);
  const isHeard = async (): Promise<boolean> => {
    const before = heard;
    bus.publish("news", Buffer.from("news"));
    await bus.connection.flush();
    return heard > before;
  };
  assert.ok(await isHeard());
  await configured("news", async () => !(await isHeard()));
  await configured("nothing", isHeard);
  await bus.close();
});

test("whoever hears of an outage and throws keeps nobody else from hearing of it", async () => {
  const bus = await nats.connect();
  const heard: string[] = [];
  bus.onLost(() => {
    throw new Error("of the listener");
  });
  bus.onLost(() => heard.push("lost"));
  bus.onRestored(() => heard.push("restored"));
  await nats.server.kill9();
  await nats.server.start();
  await until("both", () => heard.length === 2);
  await until("the others are back", () => caller.connected && server.connected);
});

test("a call in flight fails when the bus is lost; afterwards the same connections work", async () => {
  const heard: string[] = [];
  caller.onLost(() => heard.push("lost"));
  const forget = caller.onRestored(() => heard.push("restored"));
  const inFlight = assert.rejects(caller.call("silent", {}, timeoutMs), { code: "unavailable", message: /message bus/ });
  await nats.server.kill9();
  await inFlight;
  await assert.rejects(caller.call("echo", { text: "" }, timeoutMs), { code: "unavailable" });
  assert.equal(caller.connected, false);
  await nats.server.start();
  await until("an answer", async () => isDeepStrictEqual(await caller.call("echo", { text: "back" }, timeoutMs), { text: "back" }));
  assert.deepEqual(heard, ["lost", "restored"]);
  forget();
});

test("a connection made before the server is there waits for it", async () => {
  await nats.server.kill9();
  const early = Bus.connect(nats.url, "early", quiet);
  await nats.server.start();
  const bus = await early;
  assert.ok(bus.connected);
  await bus.close();
  assert.equal(bus.connected, false);
  await until("the others are back", () => caller.connected && server.connected);
});

test("a connection that breaks while it is being closed is closed all the same", async () => {
  const bus = await nats.connect();
  bus.subscribe("anything", () => {});
  await bus.connection.flush();
  nats.server.signal("SIGSTOP");
  const closed = bus.close();
  await nats.server.kill9();
  await closed;
  assert.ok(bus.connection.isClosed());
  await nats.server.start();
  await until("the others are back", () => caller.connected && server.connected);
});

test("what is said or answered while the connection closes, or later, is lost and breaks nothing", async () => {
  const bus = await nats.connect();
  const answer = Promise.withResolvers<object>();
  bus.serve("late", () => answer.promise);
  await bus.connection.flush();
  const asked = assert.rejects(caller.call("late", {}, 500), { code: "unavailable" });
  await caller.connection.flush();
  const closed = bus.close();
  while (!bus.connection.isClosed()) {
    bus.publish("anybody", new Uint8Array(1));
    await turn();
  }
  answer.resolve({ text: "too late" });
  await Promise.all([closed, asked]);
});
