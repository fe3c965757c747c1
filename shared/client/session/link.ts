/** A socket on which a session has been started or joined. */
import type { AttachMessage, ClientMessage, ServerMessage, StartedMessage, StartMessage } from "../../schemas/sessions.ts";
import { closeReasons } from "../../stream/session/protocol.ts";
import { deferred } from "../../waiting.ts";
import { APIConnectionError, errorOfStream, SandgateError } from "../errors.ts";
import type { SessionSocket } from "./socket.ts";

/** The events of a session's socket. */
export interface LinkListener {
  output(frame: Uint8Array): void;
  message(message: ServerMessage): void;
  /** @param error the error that the server reported, or the meaning of the close code; undefined if nothing was wrong */
  closed(code: number, error: SandgateError | undefined): void;
}

export interface Link {
  readonly started: StartedMessage;
  send(message: ClientMessage): void;
  write(frame: Uint8Array): void;
  close(): void;
}

/** Opens a socket; the callee supplies the key or token. */
export type Dial = () => Promise<SessionSocket>;

/** @throws {APIError} if the server refuses, or the connection breaks before the session is confirmed */
export async function openLink(dial: Dial, first: StartMessage | AttachMessage, listener: (started: StartedMessage) => LinkListener): Promise<Link> {
  const socket = await dial();
  const opening = deferred<StartedMessage>();
  let told: SandgateError | undefined;
  let heard: LinkListener | undefined;
  const read = (message: ServerMessage): void => {
    if (message.type === "error") told = errorOfStream(message);
    else if (message.type === "started" && !heard) {
      // Set immediately, because output may follow in the same packet.
      heard = listener(message);
      opening.resolve(message);
    } else heard?.message(message);
  };
  socket.listen({
    message: (data) => (typeof data === "string" ? read(JSON.parse(data) as ServerMessage) : heard?.output(data)),
    close(code) {
      const error = told ?? errorOfClose(code);
      opening.reject(error ?? new APIConnectionError("the connection was closed before the session began"));
      heard?.closed(code, error);
    },
  });
  const send = (message: ClientMessage): void => socket.send(JSON.stringify(message));
  send(first);
  const started = await opening.promise;
  return { started, send, write: (frame) => socket.send(frame), close: () => socket.close() };
}

function errorOfClose(code: number): SandgateError | undefined {
  if (code === closeReasons.done.code) return undefined;
  const known = Object.values(closeReasons).find((reason) => reason.code === code);
  return known ? new SandgateError(known.meaning) : new APIConnectionError(`the session's connection broke (code ${code})`);
}
