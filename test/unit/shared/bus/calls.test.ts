/** Calls of the contract over a real nats-server: what is not as declared is a defect of its sender. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, ask, askWithin, tell } from "../../../../shared/bus/calls.ts";
import { contract, verbsOf } from "../../../../shared/bus/contract/contract.ts";
import type { Declared } from "../../../../shared/bus/contract/declared.ts";
import { NoResponder } from "../../../../shared/bus/failures.ts";
import { encodeJson } from "../../../../shared/bus/messages.ts";
import { Bus } from "../../../../shared/bus/nats.ts";
import { callSubject, peers, subjects } from "../../../../shared/bus/subjects.ts";
import { currentTrace, inTrace, TraceContext } from "../../../../shared/util/trace-context.ts";
import { pause } from "../../../../shared/waiting.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

const nats = await fixture(startNats());
const caller = await nats.connect();
const server = await nats.connect();
const gateway = peers.gateway("g");

test("whoever is asked by the contract answers, and whoever is only told does not", async () => {
  const told: unknown[] = [];
  answer(server, "gateway", gateway, {
    take: () => ({ moved_to: "g2" }),
    return: (request) => void told.push(request),
    reserve: () => ({ granted: true }),
    settle: () => ({}),
    held: ({ ids }) => ({ ids }),
    takeover: () => ({ spent: [], pending: [] }),
    adopt: (request) => void told.push(request),
    usage: () => ({ minutes: [] }),
    redeem: () => ({ account_id: "a", sandbox_id: "s", read_only: true }),
    settleMove: () => ({ is_moved: false }),
  });
  await server.connection.flush();
  assert.deepEqual(await ask(caller, "held", gateway, { ids: ["r1"] }), { ids: ["r1"] });
  assert.deepEqual(await askWithin(caller, "reserve", gateway, { key: "k", id: "r", peer: "p", limit: 1 }, 5_000), { granted: true });
  tell(caller, "return", gateway, { key: "k", count: 1 });
  await until("what it was told", () => told.length === 1);
  assert.deepEqual(told, [{ key: "k", count: 1 }]);
});

test("a gateway hears what gateways reply elsewhere than what workers do", async () => {
  const asker = await Bus.connect(nats.url, "test", quiet, { inbox: subjects.inbox("UG"), gatewayReplies: subjects.gatewayReplies("UG") });
  const heardAt: string[] = [];
  const asked = [
    callSubject("held", gateway),
    callSubject("alive", gateway),
    callSubject("sessions", "gateway"),
    callSubject("alive", peers.worker("gateway", "p")),
  ];
  for (const subject of asked) {
    server.connection.subscribe(subject, {
      callback: (_error, { reply = "" }) => {
        heardAt.push(reply.split(".").slice(1, 3).join("."));
        server.connection.publish(reply, encodeJson({ ok: true, data: {} }));
      },
    });
  }
  await server.connection.flush();
  for (const subject of asked) await asker.call(subject, {}, 5_000);
  await asker.close();
  assert.deepEqual(heardAt.slice(0, 2), ["gateways.UG", "gateways.UG"]);
  assert.ok(
    heardAt.slice(2).every((place) => place.startsWith("UG.")),
    String(heardAt),
  );
});

test("nobody is waited for whom a gateway asks and who is not there", async () => {
  const asker = await Bus.connect(nats.url, "test", quiet, { gatewayReplies: subjects.gatewayReplies("UG") });
  await assert.rejects(ask(asker, "held", peers.gateway("nobody"), { ids: [] }), (error) => error instanceof NoResponder);
  await asker.close();
});

test("a request that is not as declared is an internal error, and its handler does not see it", async () => {
  let handled = 0;
  answer(server, "process", "p1", { alive: () => ({ handled: ++handled }) });
  await server.connection.flush();
  await assert.rejects(caller.call(callSubject("alive", "p1"), "nothing", 5_000), { code: "internal_error", message: /not valid/ });
  assert.equal(handled, 0);
});

test("a reply that is not as declared is an internal error that names no field", async () => {
  server.serve(callSubject("redeem", peers.gateway("odd")), async () => ({ account_id: 1 }));
  await server.connection.flush();
  await assert.rejects(ask(caller, "redeem", peers.gateway("odd"), { hash: "h" }), { code: "internal_error", message: "a message on the bus was not valid" });
});

test("what is asked and told is part of the trace of whoever asks, and everything else begins one", async () => {
  const seen: (TraceContext | undefined)[] = [];
  const note = (): void => void seen.push(currentTrace());
  const traced = peers.gateway("traced");
  const unused = { take: () => ({ moved_to: "g" }), reserve: () => ({ granted: true }), settle: () => ({}), takeover: () => ({ spent: [], pending: [] }) };
  const others = {
    usage: () => ({ minutes: [] }),
    redeem: () => ({ account_id: "a", sandbox_id: "s", read_only: true }),
    adopt: () => undefined,
    settleMove: () => ({ is_moved: false }),
  };
  const held = async ({ ids }: { ids: string[] }) => {
    await pause(1);
    note();
    return { ids };
  };
  answer(server, "gateway", traced, { ...unused, ...others, return: note, held });
  await server.connection.flush();
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const longest = `a=${"x".repeat(255)},b=${"y".repeat(252)}`;
  const trace = new TraceContext("req_1", `00-${traceId}-00f067aa0ba902b7-01`, longest);
  await inTrace(trace, () => ask(caller, "held", traced, { ids: [] }));
  inTrace(trace, () => tell(caller, "return", traced, { key: "k", count: 1 }));
  await until("it was told", () => seen.length === 2);
  for (const one of seen) assert.deepEqual(one?.ids, { traceId, spanId: "00f067aa0ba902b7", flags: 1, state: longest });
  await ask(caller, "held", traced, { ids: [] });
  assert.notEqual(seen[2]?.ids.traceId, traceId);
});

test("a verb that an answerer does not know was certainly not carried out", async () => {
  await assert.rejects(caller.call(callSubject("held", gateway).replace("held", "unheard"), {}, 5_000), NoResponder);
});

test("every verb that is answered says how long that may take, and has one answerer", () => {
  const all = [...verbsOf("worker"), ...verbsOf("gateway"), ...verbsOf("process")];
  assert.equal(new Set(all).size, all.length);
  for (const [verb, { reply, timeoutMs }] of Object.entries(contract as Declared)) assert.equal(reply === undefined, timeoutMs === undefined, verb);
});
