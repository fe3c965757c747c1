/** Checks and finds free ports of this machine. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { messageOf, StartFailure } from "../base/failure.ts";
import { portHolder } from "./port-holder.ts";

/** The part that needs a port, and its setting, for the message if the port is taken. */
export interface PortUser {
  readonly part: string;
  readonly setting: string;
}

/** A port that is free now. */
export async function freePort(host: string): Promise<number> {
  return tryListening(host, 0);
}

/**
 * Checks that nobody listens on a port. The gateway shares its port (SO_REUSEPORT), so two installations on one port would
 * each get half of the calls without any error.
 *
 * @throws {StartFailure} naming the part and its setting, if the port is taken or the address does not belong to this machine.
 */
export async function checkPortIsFree(host: string, port: number, user: PortUser): Promise<void> {
  await tryListening(host, port).catch((error: unknown) => {
    const code = (error as NodeJS.ErrnoException).code;
    const reasons: Record<string, string> = {
      EADDRINUSE: `port ${port} on ${host} is in use by ${portHolder(port)}`,
      EACCES: `port ${port} is only for root`,
    };
    throw new StartFailure(`${user.part} cannot listen: ${reasons[code ?? ""] ?? messageOf(error)}. Set ${user.setting} to a free port.`);
  });
}

async function tryListening(host: string, port: number): Promise<number> {
  const server = createServer();
  server.listen({ host, port });
  await once(server, "listening");
  const found = (server.address() as AddressInfo).port;
  server.close();
  await once(server, "close");
  return found;
}
