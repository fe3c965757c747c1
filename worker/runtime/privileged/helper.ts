/** The worker's end of the connection to the privileged helper, which does the little that needs the rights of root. */
import { connect, Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { SandgateError } from "../../../shared/errors.ts";
import { type FieldsOf, parseReply, parseRequest, type Reply, requestsAtOnce, type Verb } from "../../../shared/privileged.ts";
import { Semaphore } from "../../../shared/util/mutex.ts";

/** Every request is a matter of milliseconds, but a disk may be busy. */
const replyTimeoutMs = 60_000;
/** But images of memory pass no faster than whoever is at the other end of the pipe. */
const transferTimeoutMs = 7_200_000;

export class PrivilegedHelper {
  /** Opens another connection when one has ended. Without it, the helper is gone with its connection. */
  #reopen: (() => Duplex) | undefined;
  #connection: Duplex;
  readonly #slots = new Semaphore(requestsAtOnce);
  readonly #waiting = new Map<number, (reply: Reply | undefined) => void>();
  #serial = 0;
  #isGone = false;

  constructor(connection: Duplex, reopen?: () => Duplex) {
    this.#reopen = reopen;
    this.#connection = this.#hearFrom(connection);
  }

  /** @param address the number of the descriptor that the worker was started with, or the path of a socket */
  static at(address: string): PrivilegedHelper {
    if (/^\d+$/.test(address)) return new PrivilegedHelper(new Socket({ fd: Number(address), readable: true, writable: true }));
    const open = (): Duplex => connect(address);
    return new PrivilegedHelper(open(), open);
  }

  /**
   * Limits what a subvolume of the data volume may refer to; writes beyond that fail with EDQUOT.
   *
   * @param subvolume its id
   * @throws {SandgateError} `unavailable` if there is no helper any more, otherwise `internal_error`
   */
  async setQuota(subvolume: number, bytes: number): Promise<void> {
    await this.#ask("quota.set", { subvolume, bytes });
  }

  /**
   * Makes the data volume larger, by at least this much unless it would then be too large.
   *
   * @throws {SandgateError} `insufficient_storage` if it has its largest size or the disk below it has no room for more;
   *   `unavailable` if there is no helper any more, otherwise `internal_error`
   */
  async growVolume(bytes: number): Promise<void> {
    await this.#ask("volume.grow", { bytes });
  }

  /**
   * Mounts what is below a folder at another one as well, with the ids of a range in place of those on disk.
   *
   * @param source and @param target descriptors of folders of this worker
   * @throws {SandgateError} `unavailable` if there is no helper any more, otherwise `internal_error`
   */
  async mapIds(range: number, source: number, target: number): Promise<void> {
    await this.#ask("ids.map", { range, source, target });
  }

  /** @throws {SandgateError} `unprocessable` with the reason where processes cannot be dumped and restored; else as the others */
  async checkMemory(): Promise<void> {
    await this.#ask("memory.check", {});
  }

  /**
   * Dumps the processes of a sandbox into a new image. They stand still when it resolves, until `resumeMemory`.
   *
   * @param process the first of the sandbox
   * @throws {SandgateError} `unprocessable` with the reason; everything runs on then. Else as the others
   */
  async dumpMemory(image: number, process: number): Promise<void> {
    await this.#ask("memory.dump", { image, process });
  }

  /** Lets them go on. @returns the size of the image in bytes @throws as `dumpMemory`; there is no image then */
  async resumeMemory(image: number): Promise<number> {
    return (await this.#ask("memory.resume", { image })) ?? 0;
  }

  /**
   * Restores the processes of an image into a container.
   *
   * @param process waits in the place of the container's first
   * @returns the first of the copy
   * @throws as `dumpMemory`; nothing of the copy is left then
   */
  async restoreMemory(image: number, process: number): Promise<number> {
    return (await this.#ask("memory.restore", { image, process })) ?? 0;
  }

  /**
   * Gives a running copy the network that its container has been given again.
   *
   * @param process waits in the place of the container's first
   * @param copy the first of the copy
   * @throws as `dumpMemory`
   */
  async connectCopy(process: number, copy: number): Promise<void> {
    await this.#ask("memory.connect", { process, copy });
  }

  /** @returns the number by which an image is known on all machines @throws as `dumpMemory` where it cannot leave this one */
  async identifyMemory(image: number): Promise<number> {
    return (await this.#ask("memory.identify", { image })) ?? 0;
  }

  /**
   * Writes an image, sealed, into a pipe: others wait on this connection meanwhile.
   *
   * @param pipe a descriptor of this worker
   * @throws as `dumpMemory`; what is in the pipe is of no use then
   */
  async exportMemory(image: number, pipe: number): Promise<void> {
    await this.#ask("memory.export", { image, pipe }, transferTimeoutMs);
  }

  /** Makes a new image of what is in a pipe. @throws as `dumpMemory`; nothing is left of it then */
  async importMemory(image: number, identity: number, pipe: number): Promise<void> {
    await this.#ask("memory.import", { image, identity, pipe }, transferTimeoutMs);
  }

  /** Removes an image, if it is there. @throws {SandgateError} as the others */
  async removeMemory(image: number): Promise<void> {
    await this.#ask("memory.remove", { image });
  }

  /** Fails the requests that wait for replies. */
  close(): void {
    this.#reopen = undefined;
    this.#hangUp();
  }

  async #ask<V extends Verb>(verb: V, fields: FieldsOf<V>, timeoutMs = replyTimeoutMs): Promise<number | undefined> {
    const reply = await this.#slots.run(() => this.#exchange(verb, fields, timeoutMs));
    if ("ok" in reply) return reply.value;
    if (reply.error === "refused") throw new SandgateError("unprocessable", reply.message, { reason: "memory_unavailable" });
    if (reply.error === "exhausted") throw new SandgateError("insufficient_storage", reply.message);
    throw new SandgateError("internal_error", "the host could not prepare storage", { cause: new Error(`${verb}: ${reply.error}: ${reply.message}`) });
  }

  async #exchange<V extends Verb>(verb: V, fields: FieldsOf<V>, timeoutMs: number): Promise<Reply> {
    if (this.#isGone) this.#connectAgain();
    const id = this.#serial++;
    const request = JSON.stringify({ id, verb, ...fields });
    // It would end the connection for all others as well.
    if (!parseRequest(request)) throw new Error(`not a request of the privileged helper: ${request}`);
    const { promise, resolve } = Promise.withResolvers<Reply | undefined>();
    this.#waiting.set(id, resolve);
    this.#connection.write(`${request}\n`);
    // A helper that answers nothing any more is as good as gone. The connection is closed, so that no request can be done late.
    const timer = setTimeout(() => this.#hangUp(), timeoutMs);
    try {
      const reply = await promise;
      if (!reply) throw helperGone();
      return reply;
    } finally {
      clearTimeout(timer);
    }
  }

  #hearFrom(connection: Duplex): Duplex {
    connection.once("close", () => {
      if (connection === this.#connection) this.#end();
    });
    createInterface({ input: connection })
      .on("line", (line) => this.#hear(line))
      .on("error", () => {}); // That of the connection, which closes then.
    return connection;
  }

  #connectAgain(): void {
    if (!this.#reopen) throw helperGone();
    this.#isGone = false;
    this.#connection = this.#hearFrom(this.#reopen());
  }

  #hangUp(): void {
    this.#end();
    this.#connection.destroy();
  }

  #hear(line: string): void {
    const reply = parseReply(line);
    if (!reply) return;
    this.#waiting.get(reply.id)?.(reply);
    this.#waiting.delete(reply.id);
  }

  #end(): void {
    this.#isGone = true;
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }
}

const helperGone = (): SandgateError => new SandgateError("unavailable", "the worker has lost the helper that manages its storage");
