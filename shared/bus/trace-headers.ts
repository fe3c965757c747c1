/** How a message says which trace it belongs to. */
import { headers, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { formatTraceparent, TraceContext } from "../util/trace-context.ts";

/** The names of headers, as W3C Trace Context has them. */
const header = { parent: "traceparent", state: "tracestate" } as const;

/** The headers of a message that belongs to a trace. */
export function traced(trace: TraceContext | undefined): { headers?: MsgHdrs } {
  if (!trace) return {};
  const { ids } = trace;
  const fields = headers();
  fields.set(header.parent, formatTraceparent(ids));
  if (ids.state !== undefined) fields.set(header.state, ids.state);
  return { headers: fields };
}

/** The trace that a message belongs to. */
export function traceOf({ headers }: Msg): TraceContext | undefined {
  return headers?.has(header.parent) ? new TraceContext(undefined, headers.get(header.parent), headers.get(header.state)) : undefined;
}
