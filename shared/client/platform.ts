/** What Node and browsers do differently. */
import type { OpenSocket } from "./session/socket.ts";
import type { ByteStream, Transport } from "./transport.ts";

/** A file of this machine that is written under another name until it is whole. */
export interface LocalFile {
  write(bytes: Uint8Array): Promise<void>;
  /** The file gets its name. */
  keep(): Promise<void>;
  /** The file is removed; one that was there before stays. */
  drop(): Promise<void>;
}

export interface Platform {
  readonly isBrowser: boolean;
  /** @param socketPath the Unix socket of a gateway on this machine. @throws {SandgateError} where there are none */
  transport(socketPath: string | undefined): Transport;
  /** A text that nobody else makes. */
  randomId(): string;
  readonly openSocket: OpenSocket;
  /** @throws when there is no such file, or there are no files here */
  readFile(path: string): Promise<{ bytes: ByteStream; size: number }>;
  writeFile(path: string): Promise<LocalFile>;
}
