/** Spans of OpenTelemetry. Without an endpoint to send them to, there is no recorder, and nothing here does anything. */
import { SandgateError } from "../errors.ts";
import { currentTrace, inTrace, type SpanIds, type TraceContext } from "../util/trace-context.ts";

/** Ids, counts and words of fixed sets only: never a command, an environment, a key, or a path inside of a sandbox. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** `server`: a call that came from another process; `client`: one to another process; `internal`: a step. */
export type SpanKind = "server" | "client" | "internal";

export interface Span {
  /** What the span causes belongs to this. */
  readonly trace: TraceContext;
  set(attributes: Attributes): void;
  /** Ends the span; only the first end counts. */
  end(failure?: Failure): void;
}

interface Failure {
  /** An error code of ours. */
  readonly type: string;
  /** Whether the service failed, and not the caller. */
  readonly isFault: boolean;
}

export interface SpanStart {
  readonly kind: SpanKind;
  readonly name: string;
  readonly attributes: Attributes;
  readonly parent: SpanIds | undefined;
  /** Whether the parent is a span of another process. */
  readonly isRemote: boolean;
  readonly requestId: string | undefined;
}

export type Recorder = (start: SpanStart) => Span;

let recorder: Recorder | undefined;

/** From now on spans are recorded; not any more without a recorder. Called once in each process, at its start. */
export function recordSpans(by: Recorder | undefined): void {
  recorder = by;
}

/** Whether spans are recorded. Where each call costs little, what would describe its span is not even put together. */
export const areSpansRecorded = (): boolean => recorder !== undefined;

/** Starts the span of a call that has come in. Undefined where nothing is recorded. */
export function startServerSpan(
  name: string,
  { parent, requestId }: Pick<TraceContext, "parent" | "requestId">,
  attributes: () => Attributes,
): Span | undefined {
  return recorder?.({ kind: "server", name, attributes: attributes(), parent, isRemote: true, requestId });
}

/** Starts a span of the running call. Undefined where nothing is recorded, or no call is served. */
export function startSpan(kind: "client" | "internal", name: string, attributes: () => Attributes = none): Span | undefined {
  const trace = recorder && currentTrace();
  return trace && recorder?.({ kind, name, attributes: attributes(), parent: trace.ids, isRemote: false, requestId: trace.requestId });
}

const none = (): Attributes => ({});

/** Runs work as a step of the running call. */
export function step<T>(name: string, work: () => Promise<T>, attributes?: () => Attributes): Promise<T> {
  return inSpan(startSpan("internal", name, attributes), work);
}

/** Runs work in a span, which ends with it. */
export async function inSpan<T>(span: Span | undefined, work: () => Promise<T>): Promise<T> {
  if (!span) return work();
  try {
    const result = await inTrace(span.trace, work);
    span.end();
    return result;
  } catch (error) {
    span.end(failureOf(error));
    throw error;
  }
}

/** What a span says of an error. Its message is left out: it may name files and programs of a sandbox. */
export function failureOf(error: unknown): Failure {
  const { code, status } = SandgateError.from(error);
  return { type: code, isFault: status >= 500 };
}
