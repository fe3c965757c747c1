/** The part of a trace that a WebSocket is: its events come with no trace of their own. */
import { type Span, startSpan } from "../../shared/tracing/spans.ts";
import { currentTrace, inTrace } from "../../shared/util/trace-context.ts";
import type { SocketHandler } from "../http/sockets.ts";

/** Hands the events on as part of the running call. Its span goes on until the WebSocket is closed. */
export function traced(handler: SocketHandler, sandboxId: string): SocketHandler {
  const call = currentTrace();
  let span: Span | undefined;
  const inSpan = (work: () => void): void => inTrace(span?.trace ?? call, work);
  return {
    opened: (socket) => {
      span = inTrace(call, () => startSpan("internal", "session", () => ({ "sandgate.sandbox.id": sandboxId })));
      inSpan(() => handler.opened(socket));
    },
    received: (bytes, isBinary) => inSpan(() => handler.received(bytes, isBinary)),
    alive: () => handler.alive(),
    closed: () => {
      inSpan(() => handler.closed());
      span?.end();
    },
  };
}
