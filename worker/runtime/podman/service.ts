/**
 * Podman as a resident program, `podman system service`, which answers its REST API on a Unix socket. To start Podman anew for
 * each call takes more CPU time than the call. It is started by the first call, and ends when there have been none for some minutes.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { optionsFor } from "./container-store.ts";
import { type Answer, PodmanLost } from "./podman.ts";
import { type Call, RunningService } from "./service-process.ts";

/** How long it stays without a call. It takes some 45 MB of memory, and to start it doubles the time of a create. */
const idleMs = 300_000;

/** What a service serves. */
interface Serving {
  /** The OCI runtime of the containers that it creates. Others keep theirs. */
  readonly runtime?: string;
  /** The folder of its containers; without it, that of the images. */
  readonly store?: string;
}

export class PodmanService {
  readonly #dir: string;
  readonly #options: readonly string[];
  #running: RunningService | undefined;
  #serial = 0;
  #calls = 0;
  #idle: NodeJS.Timeout | undefined;

  /**
   * @param dir a folder in memory for its socket, which only this user can enter
   */
  constructor(dir: string, { runtime, store }: Serving = {}) {
    this.#dir = dir;
    // Podman before 2026 ignores the runtime that a call to create a container names.
    this.#options = [...(runtime ? ["--runtime", runtime] : []), ...(store ? optionsFor(store) : [])];
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** Starts it for a call that will follow soon. */
  warm(): void {
    this.#enter();
    this.#leave();
  }

  /**
   * Makes a call. An error that Podman reports is an answer, not an exception.
   *
   * @throws {PodmanLost} when the service ended during the call; nobody knows how far it got.
   */
  async call(call: Call): Promise<Answer> {
    const service = this.#enter();
    try {
      return await service.call(call);
    } finally {
      this.#leave();
    }
  }

  /** Makes a call that does nothing when it was made before; it is made again if the service ended during the call. @throws {PodmanLost} */
  async repeat(call: Call): Promise<Answer> {
    try {
      return await this.call(call);
    } catch (error) {
      if (!(error instanceof PodmanLost)) throw error;
      return await this.call(call);
    }
  }

  /** Ends it. Resolves when it has ended. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const service = this.#running;
    this.#running = undefined;
    await service?.end();
  }

  #enter(): RunningService {
    clearTimeout(this.#idle);
    this.#calls++;
    if (!this.#running || this.#running.hasEnded) this.#running = new RunningService(join(this.#dir, String(this.#serial++)), this.#options);
    return this.#running;
  }

  #leave(): void {
    if (--this.#calls > 0) return;
    this.#idle = setTimeout(() => void this.close(), idleMs).unref();
  }
}
