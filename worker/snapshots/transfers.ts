/**
 * Images of memory as streams, from and to the privileged helper. They are sealed, so that this process can neither read nor change
 * them. Each has a connection of its own, since requests on one wait for each other.
 */
import { closeSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { onAbort } from "../../shared/abort.ts";
import { openPipe } from "../../shared/util/libc.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import { PrivilegedHelper } from "../runtime/privileged/helper.ts";
import { pipeSocket, writerOf } from "../runtime/process/pipes.ts";

/** At once in each direction. The helper's socket takes some more connections. */
const transfersAtOnce = 2;

export class MemoryTransfers {
  readonly #address: string;
  readonly #imports = new Semaphore(transfersAtOnce);

  /** @param address the path of the helper's socket */
  constructor(address: string) {
    this.#address = address;
  }

  /** The stream of an image, as fast as it is read. @throws {SandgateError} as the helper's calls; the reason of the signal */
  async *export(image: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    signal.throwIfAborted();
    const { readFd, writeFd } = openPipe();
    const from = pipeSocket(readFd, {});
    const helper = PrivilegedHelper.at(this.#address);
    // The stream is over when nobody can write to it any more.
    const asked = helper.exportMemory(image, writeFd).finally(() => closeSync(writeFd));
    asked.catch(() => {}); // Awaited below, unless the reader stops.
    const ignore = onAbort(signal, () => void from.destroy());
    try {
      yield* from as AsyncIterable<Uint8Array>;
      signal.throwIfAborted();
      await asked;
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      ignore();
      from.destroy();
      helper.close();
    }
  }

  /** Has the helper make an image of a stream. @throws {SandgateError} as the helper's calls, and what the stream throws; nothing is left then */
  async import(image: number, identity: number, stream: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#imports.run(async () => {
      const { readFd, writeFd } = openPipe();
      const to = writerOf(writeFd);
      const helper = PrivilegedHelper.at(this.#address);
      const asked = helper.importMemory(image, identity, readFd);
      const passed = pipeline(stream, to);
      passed.catch(() => {});
      // Nobody reads what is still to come.
      asked.catch(() => to.destroy());
      try {
        await Promise.all([asked, passed]);
      } finally {
        to.destroy();
        helper.close();
        closeSync(readFd);
      }
    });
  }
}
