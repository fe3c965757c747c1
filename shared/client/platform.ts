/** The differences between Node and browsers. */
import type { OpenSocket } from "./session/socket.ts";
import type { ByteStream, Transport } from "./transport.ts";

/** A local file that is written under a temporary name until it is complete. */
export interface LocalFile {
  write(bytes: Uint8Array): Promise<void>;
  /** Gives the file its final name. */
  keep(): Promise<void>;
  /** Removes the file; an existing one of the final name is left unchanged. */
  drop(): Promise<void>;
}

export interface Platform {
  readonly isBrowser: boolean;
  /** @param socketPath the Unix socket of a gateway on this machine. @throws {SandgateError} if the platform has no such sockets */
  transport(socketPath: string | undefined): Transport;
  /** A unique random text. */
  randomId(): string;
  readonly openSocket: OpenSocket;
  /** @throws if the file does not exist, or the platform cannot read files */
  readFile(path: string): Promise<{ bytes: ByteStream; size: number }>;
  writeFile(path: string): Promise<LocalFile>;
}
