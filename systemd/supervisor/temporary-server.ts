/** A NATS server that runs while a command does its work, for nobody but this command. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { partEnvironment } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import { readableBy } from "./credentials.ts";
import { natsCommand, natsUrlHere, waitForNats } from "./nats.ts";
import { configurationOf, serverKeyOf, type Wanted } from "./nats-configuration.ts";
import { freePort } from "./ports.ts";

const host = "127.0.0.1";
const linesShown = 5;

export class TemporaryServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #files: readonly string[];
  readonly #ended: Promise<unknown>;
  readonly #early: Promise<never>;

  private constructor(url: string, process: ChildProcess, files: readonly string[]) {
    [this.url, this.#process, this.#files] = [url, process, files];
    this.#ended = once(process, "close");
    const said = text(process.stderr as NonNullable<typeof process.stderr>);
    this.#early = this.#ended.then(async () => {
      throw new StartFailure(`nats-server has ended: ${(await said).trim().split("\n").slice(-linesShown).join("\n")}`);
    });
    this.#early.catch(() => {});
  }

  /**
   * Starts it, where only this machine reaches it as a client, and waits until it answers.
   *
   * @param name of its configuration's file
   * @throws {StartFailure} if it does not answer, or the signal is aborted
   */
  static async start(
    instance: Instance,
    name: string,
    wanted: Omit<Wanted, "host" | "port" | "key">,
    signal = new AbortController().signal,
  ): Promise<TemporaryServer> {
    const port = await freePort(host);
    const files = { conf: join(instance.paths.data, `nats-${name}.conf`), key: join(instance.paths.data, `nats-${name}.key`) };
    const ownership = readableBy(instance.accounts.nats);
    await replaceFile(files.conf, await configurationOf(instance, { ...wanted, host, port, key: files.key }), ownership);
    // Its own may be for root alone.
    await replaceFile(files.key, (await readIfThere(serverKeyOf(instance, wanted.place))) ?? "", ownership);
    const [file = "", ...args] = natsCommand(instance, files.conf);
    const started = spawn(file, args, { cwd: "/", env: partEnvironment(instance, "nats"), stdio: ["ignore", "ignore", "pipe"] });
    const server = new TemporaryServer(natsUrlHere(host, port), started, Object.values(files));
    try {
      await server.during(waitForNats(server, signal));
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** @throws {StartFailure} if the server ends before the work does */
  during<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#early]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#ended;
    for (const file of this.#files) await rm(file, { force: true });
  }
}
