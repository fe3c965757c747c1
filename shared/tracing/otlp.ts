/** Sends spans to an endpoint of OpenTelemetry, as OTLP over HTTP. Loaded only where there is one: it takes some MB of memory. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import {
  createTraceState,
  ROOT_CONTEXT,
  SpanKind as SdkKind,
  type Span as SdkSpan,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Config } from "../config.ts";
import { appDir } from "../programs.mjs";
import type { Logger } from "../util/log.ts";
import { readPairs } from "../util/pairs.ts";
import { outsideTrace, type SpanIds, TraceContext } from "../util/trace-context.ts";
import { within } from "../waiting.ts";
import type { Attributes, Recorder, Span, SpanKind, SpanStart } from "./spans.ts";

/** Spans that wait to be sent; those that end while so many wait are dropped. Each takes about 2 KB. */
const waitingMax = 2_048;
/** How long one attempt to send spans takes, with its repetitions. */
const sendMs = 5_000;
/** How long a shutdown waits for the last spans. */
const flushMs = 2_000;

const kinds: Readonly<Record<SpanKind, SdkKind>> = { server: SdkKind.SERVER, client: SdkKind.CLIENT, internal: SdkKind.INTERNAL };

interface Parts {
  readonly config: Config;
  /** Of the product: `gateway` or `worker`. */
  readonly part: string;
  /** Which of them. */
  readonly instance: string;
  readonly log: Logger;
}

/** Opens a recorder. Never throws later: what cannot be sent is lost, and logged once. */
export function openRecorder(url: string, { config, part, instance, log }: Parts): { record: Recorder; close: () => Promise<void> } {
  const headers = Object.fromEntries(readPairs(config.otlpHeaders) ?? []);
  const exporter = reporting(new OTLPTraceExporter({ url, headers, timeoutMillis: sendMs }), url, log);
  const provider = new TracerProvider({
    sampler: samplerOf(config),
    resource: resourceFromAttributes(describe(config, part, instance)),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, scheduledDelayMillis: config.otelSendDelayMs, maxQueueSize: waitingMax, exportTimeoutMillis: 2 * sendMs }),
    ],
  });
  const tracer = provider.getTracer("sandgate");
  return {
    record: (start) => new RecordedSpan(tracer, start),
    close: async () =>
      void (await within(
        provider.shutdown().catch(() => {}),
        flushMs,
      )),
  };
}

function describe({ otelServiceName, otelResourceAttributes }: Config, part: string, instance: string): Record<string, string | number> {
  const { version } = JSON.parse(readFileSync(join(appDir, "package.json"), "utf8")) as { version: string };
  return {
    "service.name": `sandgate-${part}`,
    "service.namespace": "sandgate",
    "service.version": version,
    "service.instance.id": instance,
    "host.name": hostname(),
    "process.pid": process.pid,
    ...Object.fromEntries(readPairs(otelResourceAttributes) ?? []),
    ...(otelServiceName ? { "service.name": otelServiceName } : {}),
  };
}

function samplerOf({ otelTracesSampler: name, otelTracesSamplerArg: ratio }: Config): Sampler {
  const [, kind] = /^(?:parentbased_)?(.*)$/.exec(name) ?? [];
  const root = kind === "always_on" ? new AlwaysOnSampler() : kind === "always_off" ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(ratio);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

/** Logs when spans are lost, once until they arrive again. The SDK would otherwise write to standard error, each time. */
function reporting(exporter: SpanExporter, url: string, log: Logger): SpanExporter {
  const { origin } = new URL(url);
  let isLost = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed !== isLost) {
          isLost = failed;
          outsideTrace(() => {
            if (failed) log.warn({ event: "traces_lost", endpoint: origin, err: result.error }, "spans could not be sent; calls are not affected");
            else log.info({ event: "traces_sent", endpoint: origin }, "spans can be sent again");
          });
        }
        done({ code: 0 });
      }),
    shutdown: () => exporter.shutdown(),
  };
}

class RecordedSpan implements Span {
  readonly trace: TraceContext;
  readonly #span: SdkSpan;

  constructor(tracer: Tracer, { kind, name, attributes, parent, isRemote, requestId }: SpanStart) {
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, { ...sdkContextOf(parent), isRemote }) : ROOT_CONTEXT;
    this.#span = tracer.startSpan(name, { kind: kinds[kind], attributes: present(attributes) }, context);
    this.trace = TraceContext.of(idsOf(this.#span.spanContext()), requestId);
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(present(attributes));
  }

  end(failure?: Parameters<Span["end"]>[0]): void {
    if (failure) this.set({ "error.type": failure.type });
    if (failure?.isFault) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    if (this.#span.isRecording()) this.#span.end();
  }
}

function sdkContextOf({ traceId, spanId, flags, state }: SpanIds): SpanContext {
  return { traceId, spanId, traceFlags: flags, ...(state === undefined ? {} : { traceState: createTraceState(state) }) };
}

function idsOf({ traceId, spanId, traceFlags, traceState }: SpanContext): SpanIds {
  const state = traceState?.serialize();
  return { traceId, spanId, flags: traceFlags, ...(state ? { state } : {}) };
}

function present(attributes: Attributes): Record<string, string | number | boolean> {
  const pairs = Object.entries(attributes).filter((pair): pair is [string, string | number | boolean] => pair[1] !== undefined);
  return Object.fromEntries(pairs);
}
