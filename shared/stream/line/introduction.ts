/** The first words on a line: who comes shows the token that it was given, and is told that it may stay. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { SandgateError } from "../../errors.ts";
import { dial, type LineAddress } from "./tls.ts";

const welcome = Buffer.from([1]);
const patienceMs = 3_000;

/** Resolves when there is more to read, or nothing any more. Leaves no listener: one for `readable` would keep data from flowing. */
async function changed(socket: Socket, timeout: AbortSignal): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([timeout, over.signal]);
  try {
    await Promise.race(["readable", "end", "close"].map((event) => once(socket, event, { signal })));
  } finally {
    over.abort();
  }
}

/** Reads so many bytes and leaves what follows to be read. @throws {Error} when they do not come in time */
async function readExactly(socket: Socket, bytes: number): Promise<Buffer> {
  const timeout = AbortSignal.timeout(patienceMs);
  for (;;) {
    const read = socket.read(bytes) as Buffer | null;
    if (read?.length === bytes) return read;
    if (socket.readableEnded || socket.destroyed) throw new Error("the other end has closed the connection");
    await changed(socket, timeout);
  }
}

/**
 * Comes to a Unix socket, or to another machine by TLS, with a token.
 *
 * @throws {SandgateError} `unavailable` if nobody listens there, or the token is not known
 */
export async function comeTo(place: string | LineAddress, token: string): Promise<Socket> {
  const [socket, connected] = typeof place === "string" ? [connect(place), "connect"] : [dial(place, token), "secureConnect"];
  // What `once` does not hear; the line has listeners of its own.
  socket.on("error", () => {});
  try {
    await once(socket, connected, { signal: AbortSignal.timeout(patienceMs) });
    socket.write(token);
    if (!(await readExactly(socket, welcome.length)).equals(welcome)) throw new Error("no welcome came");
    return socket;
  } catch (cause) {
    socket.destroy();
    throw new SandgateError("unavailable", "the gateway cannot be reached for a line", { cause });
  }
}

/** Takes in who has come. @param admit what becomes of it, by its token; undefined for one that is not known. @throws {Error} if it is not let in */
export async function receive(socket: Socket, tokenLetters: number, admit: (token: string) => ((socket: Socket) => void) | undefined): Promise<void> {
  try {
    const admitted = admit((await readExactly(socket, tokenLetters)).toString("latin1"));
    if (!admitted) throw new Error("its token is not known");
    socket.write(welcome);
    admitted(socket);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
