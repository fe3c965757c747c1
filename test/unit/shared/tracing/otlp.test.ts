/** The recorder of spans, and what becomes of them when nobody takes them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import { openRecorder } from "../../../../shared/tracing/otlp.ts";
import { inSpan, recordSpans, startServerSpan, startSpan, step } from "../../../../shared/tracing/spans.ts";
import { currentTrace, inTrace, TraceContext } from "../../../../shared/util/trace-context.ts";
import { quiet } from "../../../helpers/nats.ts";
import { OtlpReceiver } from "../../../helpers/otlp.ts";
import { until } from "../../../helpers/until.ts";

/** Records into a receiver of its own while `work` runs, and returns the receiver with all that it got. */
async function recorded(environment: Record<string, string>, work: (receiver: OtlpReceiver) => Promise<void>): Promise<OtlpReceiver> {
  await using receiver = await OtlpReceiver.start();
  const config = loadConfig({ HOME: "/home/somebody", OTEL_BSP_SCHEDULE_DELAY: "50", ...environment });
  const { record, close } = openRecorder(`${receiver.url}/v1/traces`, { config, part: "test", instance: "one", log: quiet });
  recordSpans(record);
  try {
    await work(receiver);
  } finally {
    recordSpans(undefined);
    await close();
  }
  return receiver;
}

const serve = (trace: TraceContext, work: () => Promise<void>): Promise<void> =>
  inSpan(
    startServerSpan("call", trace, () => ({ "sandgate.sandbox.id": "sb_1", absent: undefined })),
    work,
  );

test("steps are children of what they are part of, and errors are told by their codes", async () => {
  const { spans } = await recorded({ OTEL_SERVICE_NAME: "mine", OTEL_RESOURCE_ATTRIBUTES: "service.name=other,a=b" }, async () => {
    await serve(new TraceContext("req_1"), async () => {
      assert.equal(currentTrace()?.requestId, "req_1");
      await step("outer", () => step("inner", async () => {}));
      const failing = step("failing", async () => Promise.reject(new SandgateError("not_found", "there is no /secret", { reason: "no_such_file" })));
      await assert.rejects(failing, { code: "not_found" });
      await assert.rejects(step("defect", async () => Promise.reject(new Error("of /secret"))));
    });
  });
  const of = (name: string) => spans.find((span) => span.name === name) ?? assert.fail(name);
  assert.equal(of("call").parentId, "");
  assert.equal(of("outer").parentId, of("call").spanId);
  assert.equal(of("inner").parentId, of("outer").spanId);
  assert.deepEqual([of("failing").attributes, of("failing").isError], [{ "error.type": "not_found" }, false]);
  assert.deepEqual([of("defect").attributes, of("defect").isError], [{ "error.type": "internal_error" }, true]);
  assert.deepEqual(of("call").attributes, { "sandgate.sandbox.id": "sb_1" });
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
  const { "service.name": name, "service.instance.id": instance, a } = of("call").resource;
  assert.deepEqual([name, instance, a], ["mine", "one", "b"]);
});

test("outside of a call, and without a recorder, there are no spans", async () => {
  const { spans } = await recorded({}, async () => {
    assert.equal(startSpan("internal", "nobody's"), undefined);
    await step("nobody's", async () => {});
  });
  assert.deepEqual(spans, []);
  assert.equal(
    inTrace(new TraceContext("req_1"), () => startSpan("internal", "unrecorded")),
    undefined,
  );
});

test("the sampler decides, and the caller where it may", async () => {
  const parent = (flags: string): TraceContext => new TraceContext("req_1", `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-${flags}`);
  const counts: Record<string, number> = {};
  for (const sampler of ["always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off"]) {
    const { spans } = await recorded({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: "0" }, async () => {
      for (const trace of [new TraceContext("req_1"), parent("00"), parent("01")]) await serve(trace, () => step("step", async () => {}));
    });
    counts[sampler] = spans.length;
  }
  assert.deepEqual(counts, { always_on: 6, always_off: 0, traceidratio: 0, parentbased_always_on: 4, parentbased_always_off: 2 });
});

test("what is not recorded is part of its trace all the same", async () => {
  await recorded({ OTEL_TRACES_SAMPLER: "always_off" }, async () => {
    await serve(new TraceContext("req_1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1"), async () => {
      const { traceId, flags } = currentTrace()?.ids ?? assert.fail();
      assert.deepEqual([traceId, flags & 1], ["4bf92f3577b34da6a3ce929d0e0e4736", 0]);
    });
  });
});

test("while spans cannot be sent, so many wait and no more", async () => {
  const made = 10_000;
  const { spans } = await recorded({}, async (receiver) => {
    receiver.refusals = 1;
    for (let index = 0; index < made; index++) startServerSpan("call", new TraceContext("req_1"), () => ({}))?.end();
    await until("some were refused", () => receiver.refusals === 0);
  });
  assert.ok(spans.length > 0 && spans.length <= 2_048, `${spans.length} spans`);
});
