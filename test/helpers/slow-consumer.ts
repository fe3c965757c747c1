/** A client of the NATS server that hears something and takes nothing of it. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { connect as secure, type TLSSocket } from "node:tls";
import { nkeyAuthenticator } from "../../shared/bus/nkey.ts";
import { serverName } from "../../shared/bus/subjects.ts";

/** @param address as `busAddress` makes it. Resolves when the server has its subscription. */
export async function listenWithoutTaking(address: string, subject: string): Promise<TLSSocket> {
  const { hostname, port, searchParams } = new URL(address);
  const socket = connect(Number(port), hostname);
  const [greeting] = (await once(socket, "data")) as [Buffer];
  const { nonce } = JSON.parse(greeting.toString().slice("INFO ".length)) as { nonce: string };
  const secured = secure({ socket, ca: readFileSync(searchParams.get("ca") ?? ""), servername: serverName });
  await once(secured, "secureConnect");
  const who = nkeyAuthenticator(readFileSync(searchParams.get("nkeyFile") ?? "", "utf8").trim())(nonce);
  secured.write(`CONNECT ${JSON.stringify({ ...who, verbose: false, tls_required: true, protocol: 1 })}\r\nSUB ${subject} 1\r\nPING\r\n`);
  let said = "";
  while (!said.includes("PONG")) said += String(((await once(secured, "data")) as [Buffer])[0]);
  secured.pause();
  // The server ends the connection in mid-record.
  return secured.on("error", () => {});
}
