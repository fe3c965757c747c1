/** At which address others reach this machine. */
import { once } from "node:events";
import { connect } from "node:net";
import { StartFailure } from "../base/failure.ts";

const answerMs = 10_000;

/** The address from which this machine reaches one of the servers. @throws {StartFailure} if it reaches none */
export async function addressTowards(urls: readonly string[]): Promise<string> {
  for (const url of urls) {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
    try {
      await once(socket, "connect", { signal: AbortSignal.timeout(answerMs) });
      if (socket.localAddress) return socket.localAddress.replace(/^::ffff:/, "");
    } catch {
      // Perhaps another one.
    } finally {
      socket.destroy();
    }
  }
  throw new StartFailure(`This machine reaches none of ${urls.join(", ")}: check the network between the machines.`);
}
