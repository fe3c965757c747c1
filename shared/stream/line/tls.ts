/**
 * TLS for a line between two machines. Its keys come from the token of the call that asked for the line: a handshake succeeds only
 * between two that have the same token, and tells it to nobody. So there are no certificates, and nobody else gets any further.
 */
import { createHash } from "node:crypto";
import { isIP, type Socket } from "node:net";
import { connect, createSecureContext, TLSSocket, type TlsOptions } from "node:tls";
import { SandgateError } from "../../errors.ts";

/** Where a process of another machine listens. */
export interface LineAddress {
  readonly host: string;
  readonly port: number;
}

/** The one suite of TLS 1.3 in which OpenSSL takes a key that both have already. Recorded traffic stays secret: each handshake adds random keys. */
const only = { minVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const;

/** By this, which everybody on the way can read, the one who listens finds the token. */
export const publicNameOf = (token: string): string => createHash("sha256").update(token).digest("hex");

const keyOf = (token: string): Buffer => Buffer.from(token, "hex");

/** Connects; what answers has the token once `secureConnect` comes. @throws {SandgateError} `invalid_request` for a host that is no address */
export function dial({ host, port }: LineAddress, token: string): TLSSocket {
  // No resolver is asked for names of somebody else's choice.
  if (isIP(host) === 0) throw new SandgateError("invalid_request", "a line leads to an address only");
  // Without authorities, no certificate stands in for the token.
  const trust = { ca: [], checkServerIdentity: () => undefined };
  return connect({ ...only, ...trust, host, port, pskCallback: () => ({ psk: keyOf(token), identity: publicNameOf(token) }) }).setNoDelay();
}

/** Answers who has connected. @param tokenOf the token with this public name, if one is expected */
export function answering(socket: Socket, tokenOf: (publicName: string) => string | undefined): Socket {
  const pskCallback: TlsOptions["pskCallback"] = (_socket, name) => {
    const token = tokenOf(name);
    return token === undefined ? null : keyOf(token);
  };
  const options = { isServer: true, secureContext: createSecureContext(only), pskCallback };
  return new TLSSocket(socket.setNoDelay(), options).on("error", () => {});
}
