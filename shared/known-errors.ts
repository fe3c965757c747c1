/** Errors that several places report, each worded once. */
import { SandgateError } from "./errors.ts";

/** Names in messages are shown up to here: an id may be anything that a caller has sent. */
const shown = (id: string): string => id.slice(0, 64);

export const errors = {
  /** The worker at the other end of a stream: how far what ran there got is not known. */
  workerLost: () => new SandgateError("worker_lost", "the worker was lost while the call ran"),
  stopping: (part: "gateway" | "worker", details: { readonly refused?: true } = {}) =>
    new SandgateError("unavailable", `the ${part} is shutting down`, details),
  clientGone: () => new SandgateError("unavailable", "the client went away"),
  sandboxNotRunning: (status: string) => new SandgateError("conflict", `the sandbox is not running, it is in state "${status}"`),
  /** A passing state, as that of a worker that restarts. */
  sandboxMoving: () => new SandgateError("unavailable", "the sandbox is being moved to another worker; try again"),
  noStrongWorker: () =>
    new SandgateError(
      "unprocessable",
      'this needs isolation "strong", which no worker here offers; operators see why in the line strong_isolation of the start',
      {
        reason: "not_supported",
      },
    ),
  noMemory: (why: string) => new SandgateError("unprocessable", `memory is required, but ${why}`, { reason: "memory_unavailable" }),
  notFound: (kind: "sandbox" | "snapshot" | "image" | "worker", id: string) =>
    new SandgateError("not_found", `${kind[0]?.toUpperCase()}${kind.slice(1)} not found: ${shown(id)}`, { reason: `no_such_${kind}` }),
} as const;
