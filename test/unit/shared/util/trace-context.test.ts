/** W3C Trace Context: what is read from a call, what is passed on, and what it follows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  currentTrace,
  formatTraceparent,
  inTrace,
  outsideTrace,
  parseTraceparent,
  parseTracestate,
  TraceContext,
} from "../../../../shared/util/trace-context.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const valid = `00-${traceId}-${spanId}-01`;

test("a traceparent is read and written", () => {
  assert.deepEqual(parseTraceparent(valid), { traceId, spanId, flags: 1 });
  for (const flags of ["00", "01", "02", "03"]) {
    const text = `00-${traceId}-${spanId}-${flags}`;
    assert.equal(formatTraceparent(parseTraceparent(text) ?? assert.fail(text)), text);
  }
});

test("flags that are not known are not passed on", () => {
  assert.equal(parseTraceparent(`00-${traceId}-${spanId}-ff`)?.flags, 3);
  assert.equal(parseTraceparent(`00-${traceId}-${spanId}-f8`)?.flags, 0);
});

test("a later version may have more, which is left out", () => {
  assert.deepEqual(parseTraceparent(`cc-${traceId}-${spanId}-01-what-the-future-brings`), { traceId, spanId, flags: 1 });
  assert.deepEqual(parseTraceparent(`01-${traceId}-${spanId}-01`), { traceId, spanId, flags: 1 });
  assert.equal(parseTraceparent(`cc-${traceId}-${spanId}-01.what`), undefined);
});

test("whatever is not exactly a traceparent counts as none", () => {
  const bad = [
    ...["", "-", "00", valid.toUpperCase(), ` ${valid}`, `${valid} `, `${valid}-`, `${valid}-more`, `${valid}\n`, `${valid}, ${valid}`],
    ...[`ff-${traceId}-${spanId}-01`, `0-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-1`, `00-${traceId}-${spanId}-0g`, `00-${traceId}-${spanId}`],
    ...[`00-${"0".repeat(32)}-${spanId}-01`, `00-${traceId}-${"0".repeat(16)}-01`, `00-${traceId}0-${spanId}-01`, `00-${traceId.slice(1)}-${spanId}-01`],
    ...[`00_${traceId}_${spanId}_01`, `00-${traceId}-${spanId}-01`.repeat(1_000), "0".repeat(100_000)],
  ];
  for (const text of bad) assert.equal(parseTraceparent(text), undefined, text.slice(0, 100));
});

test("a tracestate is passed on as it is, or not at all", () => {
  assert.equal(parseTracestate("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"), "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
  assert.equal(parseTracestate(" a=1 ,\t,t@v=x y!"), "a=1,t@v=x y!");
  const bad = [
    "",
    ",",
    "a",
    "=1",
    "A=1",
    "a=",
    "a=1,a=2",
    "a=b=c",
    "a=\u00e9",
    "a=1\n",
    `a=${"x".repeat(511)}`,
    Array.from({ length: 33 }, (_, at) => `k${at}=1`).join(),
  ];
  for (const text of bad) assert.equal(parseTracestate(text), undefined, JSON.stringify(text.slice(0, 100)));
});

test("a call continues the trace that it came with", () => {
  const trace = new TraceContext("req_1", valid, "a=1");
  assert.equal(trace.isUsed, false);
  assert.deepEqual(trace.ids, { traceId, spanId, flags: 1, state: "a=1" });
  assert.deepEqual(trace.parent, trace.ids);
  assert.equal(trace.isUsed, true);
  assert.deepEqual(new TraceContext("req_1", valid, "A=1").ids, { traceId, spanId, flags: 1 });
});

test("a call without a valid one begins a trace of its own", () => {
  for (const text of ["", `${valid}-more`]) {
    const [one, other] = [new TraceContext("req_1", text, "a=1"), new TraceContext("req_1", text, "a=1")];
    assert.equal(one.parent, undefined);
    assert.deepEqual(parseTraceparent(formatTraceparent(one.ids)), one.ids);
    assert.equal(one.ids, one.ids);
    assert.notEqual(one.ids.traceId, other.ids.traceId);
    assert.notEqual(one.ids.traceId, traceId);
    assert.equal(one.ids.state, undefined);
  }
});

test("what runs for a call knows it, at the same time as others", async () => {
  const seen = async (name: string): Promise<(string | undefined)[]> => {
    const trace = new TraceContext(name);
    const found: (string | undefined)[] = [];
    await inTrace(trace, async () => {
      found.push(currentTrace()?.requestId);
      await sleep(1);
      found.push(currentTrace()?.requestId);
      await new Promise<void>((resolve) => setImmediate(resolve));
      found.push(
        currentTrace()?.requestId,
        outsideTrace(() => currentTrace()?.requestId),
        currentTrace()?.requestId,
      );
    });
    return found;
  };
  const all = await Promise.all(["a", "b", "c"].map(seen));
  assert.deepEqual(
    all,
    ["a", "b", "c"].map((name) => [name, name, name, undefined, name]),
  );
  assert.equal(currentTrace(), undefined);
});
