/** Turns a client's first message into a call to the worker. */

import type { TSchema } from "typebox";
import type { StreamTarget } from "../../shared/bus/contract/fields.ts";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import { commandBytesMax } from "../../shared/schemas/executions.ts";
import { type AttachMessage, ClientMessage, type StartMessage } from "../../shared/schemas/sessions.ts";
import { inputChecker } from "../../shared/schemas/validate.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import { detachTimeoutDefaultS, terminalDefault } from "../../shared/stream/session/protocol.ts";
import type { By, Caller } from "../call.ts";
import type { Dispatcher } from "../fleet/dispatch.ts";
import type { WorkerRef } from "../fleet/placement.ts";

/** The parts of the gateway that a connection uses. */
export interface Parts {
  readonly config: Config;
  readonly hub: StreamHub;
  readonly workers: Dispatcher;
}

/** The caller, the sandbox, and what the caller asks for. */
export interface Ask {
  readonly caller: Caller;
  readonly by: By;
  readonly sandboxId: string;
  readonly worker: WorkerRef;
  /** Whether the client may only read. */
  readonly readOnly: boolean;
  /** Session and action are set by the first message. */
  sessionId?: string;
  action?: "start" | "attach";
}

type Opening = Ask & { readonly sessionId: string };

/** Resolves when the worker has accepted the call and writes to the stream. @throws {SandgateError} when it refuses. */
export async function openOnWorker(parts: Parts, ask: Opening, message: StartMessage | AttachMessage, to: StreamTarget): Promise<void> {
  const common = { ...ask.by, sandbox_id: ask.sandboxId, to };
  if (message.type === "start") await parts.workers.call(ask.worker, "sessionStart", { ...common, ...startOf(parts, ask, message) });
  else await parts.workers.call(ask.worker, "sessionAttach", { ...common, ...attachOf(ask, message) });
}

function startOf({ config }: Parts, { caller, readOnly, sessionId }: Opening, message: StartMessage) {
  if (readOnly || caller.grant?.session_id) throw new SandgateError("forbidden", "this token cannot start a session", { reason: "token_scope" });
  const { command, env, working_dir, cols, rows, tty = command === undefined } = message;
  if (command && Buffer.byteLength(command) > commandBytesMax) throw new SandgateError("invalid_request", `command must be at most ${commandBytesMax} bytes`);
  const detachMs = (message.detach_timeout ?? Math.min(detachTimeoutDefaultS, config.sessionDetachMaxMs / 1_000)) * 1_000;
  if (detachMs > config.sessionDetachMaxMs) {
    throw new SandgateError("invalid_request", `detach_timeout must be between 0 and ${config.sessionDetachMaxMs / 1_000} (a whole number of seconds)`);
  }
  return {
    session_id: sessionId,
    ...(command === undefined ? {} : { command }),
    ...(tty ? { terminal: { cols: cols ?? terminalDefault.cols, rows: rows ?? terminalDefault.rows } } : {}),
    env: env ?? {},
    ...(working_dir ? { working_dir } : {}),
    detach_ms: detachMs,
    ...(message.timeout === undefined ? {} : { timeout_ms: message.timeout * 1_000 }),
  };
}

function attachOf({ caller, readOnly }: Ask, { session_id, since, takeover = false, read_only = false }: AttachMessage) {
  if (takeover && (readOnly || read_only)) throw new SandgateError("forbidden", "who may only read cannot take a session over", { reason: "read_only" });
  const only = caller.grant?.session_id;
  if (only !== undefined && only !== session_id) throw new SandgateError("forbidden", "this token is for another session", { reason: "token_scope" });
  return { session_id, ...(since === undefined ? {} : { since }), takeover, read_only: readOnly || read_only };
}

const checks = new Map(ClientMessage.anyOf.map((schema) => [schema.properties.type.const as string, inputChecker(schema as TSchema).check]));

/** Parses a text frame. @throws {SandgateError} `invalid_request` that says what is wrong */
export function readClientMessage(text: string): ClientMessage {
  const value = parse(text);
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  if (typeof type !== "string") throw new SandgateError("invalid_request", "a text frame must be a JSON object with a type");
  const check = checks.get(type);
  if (!check) throw new SandgateError("invalid_request", `unknown message type: ${type.slice(0, 64)}`);
  return check(value) as ClientMessage;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SandgateError("invalid_request", "a text frame is not valid JSON", { cause });
  }
}
