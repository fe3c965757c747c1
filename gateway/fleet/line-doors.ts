/** Where workers come for their lines: a Unix socket for those of this machine, and a port for those of others. */
import { chmod, readdir, rm, stat } from "node:fs/promises";
import { connect, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Request } from "../../shared/bus/contract/contract.ts";
import { lineTokenLetters } from "../../shared/bus/contract/lines.ts";
import { receive } from "../../shared/stream/line/introduction.ts";
import { answering } from "../../shared/stream/line/tls.ts";
import type { Logger } from "../../shared/util/log.ts";

/** Connections to one door whose token has not come yet. Each has few seconds for that, its handshake included. */
const strangersMax = 64;
/** For so many gateways of one machine. */
const portsMax = 8;
/** What others than the owner and its group may do in the folder. */
const others = 0o007;

/** Who is let in. */
export interface Guests {
  /** What becomes of who has a token; undefined for one that is not known. Uses the token up. */
  admit(token: string): ((socket: Socket) => void) | undefined;
  /** The token that is expected and has this public name. */
  tokenOf(publicName: string): string | undefined;
}

export interface Door {
  /** What a worker is told of it. */
  readonly place: Pick<Request<"line">, "socket" | "address">;
  /** Nobody comes in any more. Lines stay. */
  close(): void;
}

/** Opens a Unix socket in a folder. @throws {Error} if it cannot listen there */
export async function openSocket(dir: string, name: string, guests: Guests, log: Logger): Promise<Door> {
  if (((await stat(dir)).mode & others) !== 0) throw new Error(`${dir} can be entered by everybody`);
  await removeForsaken(dir);
  const path = join(dir, name);
  const server = guarded(guests, (err) => log.info({ event: "line_refused", err }, refused));
  await listen(server, { path }, log);
  // Who comes this far may enter the folder.
  await chmod(path, 0o666);
  return { place: { socket: name }, close: () => void server.close() };
}

/** Opens the first port of some that is free. @throws {Error} if none is, or the address is not this machine's */
export async function openPort(host: string, firstPort: number, guests: Guests, log: Logger): Promise<Door> {
  // Whoever is on the network could fill the log.
  const refuse = (err: unknown): void => log.debug({ event: "line_refused", err }, refused);
  const server = guarded(guests, refuse, (socket) => answering(socket, (name) => guests.tokenOf(name)));
  for (let port = firstPort; ; port++) {
    try {
      await listen(server, { host, port }, log);
      return { place: { address: { host, port } }, close: () => void server.close() };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port === firstPort + portsMax - 1) throw error;
    }
  }
}

const refused = "somebody came for a line and was not let in";

/** @param secured what speaks on a connection */
function guarded(guests: Guests, refuse: (error: unknown) => void, secured = (socket: Socket): Socket => socket): Server {
  let strangers = 0;
  return createServer((socket) => {
    socket.on("error", () => {});
    if (strangers >= strangersMax) return void socket.destroy();
    strangers++;
    receive(secured(socket), lineTokenLetters, (token) => guests.admit(token))
      .catch(refuse)
      .finally(() => strangers--);
  });
}

async function listen(server: Server, options: ListenOptions, log: Logger): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen(options, resolve);
  await promise.finally(() => server.off("error", reject));
  server.on("error", (err) => log.error({ err }, "the socket for workers failed"));
}

/** Removes the sockets of gateways that were killed. */
async function removeForsaken(dir: string): Promise<void> {
  const sockets = (await readdir(dir)).filter((name) => name.endsWith(".sock")).map((name) => join(dir, name));
  for (const path of sockets) if (await isForsaken(path)) await rm(path, { force: true });
}

function isForsaken(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
  });
}
