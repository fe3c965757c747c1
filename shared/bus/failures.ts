/** What NATS and JetStream report, as errors of ours: the one place where that is done. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { JetStreamApiError } from "@nats-io/jetstream";
import { NoRespondersError, RequestError, TimeoutError } from "@nats-io/transport-node";
import { SandgateError } from "../errors.ts";

/** Codes of JetStream: what a stream or a write was refused for. */
const apiCodes = {
  noStream: 10_059,
  /** Another stream has the subjects. */
  subjectsTaken: 10_065,
  /** The server has less room than was asked for. */
  noRoom: 10_047,
  /** A write names another revision than the last. */
  wrongLastSequence: 10_071,
  /** A stream has reached its size, or could not be written for another reason. */
  storeFull: 10_077,
  /** The server has reached its size, or its disk is full. */
  serverFull: 10_023,
} as const;

export const isApiError = (error: unknown, code: keyof typeof apiCodes): boolean => error instanceof JetStreamApiError && error.code === apiCodes[code];

/** For a `catch`: undefined for this code, else thrown again. */
export const unless =
  (code: keyof typeof apiCodes) =>
  (error: unknown): undefined => {
    if (!isApiError(error, code)) throw error;
  };

/** How soon a caller may try again when the storage is full: somebody has to make room. */
const fullRetryAfterS = 10;

export function busLost(cause?: unknown): SandgateError {
  if (isApiError(cause, "storeFull") || isApiError(cause, "serverFull"))
    return new SandgateError("insufficient_storage", "the service's storage is full", { cause, retryAfterS: fullRetryAfterS });
  if (cause instanceof TimeoutError) return new SandgateError("unavailable", "the service's storage does not answer; try again", { cause });
  return new SandgateError("unavailable", "the connection to the message bus was lost; try again", { cause });
}

/** Whether nobody listened on the subject of a request. */
export const isUnheard = (error: unknown): boolean => error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());

/** Why there is no answer. */
export function unanswered(error: unknown): SandgateError {
  if (isUnheard(error)) return new NoResponder(error);
  return error instanceof TimeoutError || error instanceof RequestError ? tooLate(error) : busLost(error);
}

const tooLate = (cause?: unknown): SandgateError => new SandgateError("unavailable", "the worker did not answer in time", { cause });

/** Whoever is asked is not there, or not any more. */
class Gone extends SandgateError {
  constructor(cause?: unknown) {
    super("unavailable", "the worker is gone or restarting", { cause });
  }
}

/** Nobody listens on the subject: the call was certainly not carried out. */
export class NoResponder extends Gone {}

/** Whom a call was sent to stopped or fell silent before it answered. */
export class PeerGone extends Gone {}

/**
 * Resolves when what has already arrived at this process is read. It may lie there after the process stood still, or come together
 * with the news that no more will; timers, sockets and promises are then served in any order.
 */
export async function onceRead(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** A timer that is this late belongs to a process that stood still: what was to be waited for may have come, or stood still as well. */
const lateMs = 250;

/**
 * Waits so long for an answer, and once more where this process itself stood still meanwhile. What has arrived when the time
 * is over counts, read or not.
 *
 * @throws {SandgateError} `unavailable` when there is none.
 */
export function inTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const dueMs = performance.now() + timeoutMs;
    const giveUp = (): void => void onceRead().then(() => reject(tooLate()));
    let timer = setTimeout(() => {
      if (performance.now() - dueMs < lateMs) giveUp();
      else timer = setTimeout(giveUp, timeoutMs);
    }, timeoutMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
