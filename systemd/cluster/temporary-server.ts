/** A NATS server that runs while a command does its work, for nobody but this command. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { replaceFile } from "../base/write-file.ts";
import { readableBy } from "../supervisor/credentials.ts";
import { natsCommand, natsEnvironment, natsUrlHere } from "../supervisor/nats.ts";
import { configurationOf, type Wanted } from "../supervisor/nats-configuration.ts";
import { freePort } from "../supervisor/ports.ts";

const host = "127.0.0.1";

export class TemporaryServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #conf: string;

  private constructor(url: string, process: ChildProcess, conf: string) {
    this.url = url;
    this.#process = process;
    this.#conf = conf;
  }

  /** Starts it, where only this machine reaches it as a client. */
  static async start(instance: Instance, name: string, wanted: Omit<Wanted, "host" | "port">): Promise<TemporaryServer> {
    const port = await freePort(host);
    const conf = join(instance.paths.data, `nats-${name}.conf`);
    await replaceFile(conf, await configurationOf(instance, { ...wanted, host, port }), readableBy(instance.accounts.nats));
    const [file = "", ...args] = natsCommand(instance, conf);
    const started = spawn(file, args, { cwd: "/", env: natsEnvironment(instance), stdio: "ignore" });
    return new TemporaryServer(natsUrlHere(host, port), started, conf);
  }

  /** @throws {StartFailure} if it does not run any more */
  check(): void {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) throw new StartFailure(`nats-server ended; see: nats-server -c ${this.#conf}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, "exit");
      this.#process.kill("SIGTERM");
      await ended;
    }
    await rm(this.#conf, { force: true });
  }
}
