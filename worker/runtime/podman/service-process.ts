/** One run of Podman's service: the program, and the calls to it. */
import { openSync, readFileSync, rmSync } from "node:fs";
import type { Agent } from "node:http";
import { attempt } from "../../../shared/util/attempt.ts";
import { nodeHttp } from "../../../shared/util/node-http.ts";
import { until } from "../../../shared/waiting.ts";
import { startProgram } from "../process/program.ts";
import { type Answer, PodmanLost } from "./podman.ts";

/** How long it stays without a call: a worker that was killed makes none. */
const abandonedS = 4;
/** The worker makes one that often, so that it stays. */
const stayMs = 2_000;
/** It takes a fraction of a second. One that hangs is killed, and the call that started it starts another. */
const startMsMax = 20_000;
const startPollMs = 4;
const endMsMax = 10_000;
const callMsMax = 120_000;
const messageCharactersMax = 2_000;

/** The API as it was in Podman 4.0, which later versions keep. */
const root = "http://podman/v4.0.0/libpod";

/** A call; `query` and `body` as the API describes them. */
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export class RunningService {
  readonly #pid: Promise<number | undefined>;
  readonly #socket: string;
  readonly #log: string;
  readonly #agent: Agent;
  readonly #exited: Promise<void>;
  readonly #ready: Promise<void>;
  readonly #staying: NodeJS.Timeout;
  #isEnding = false;
  #end: string | undefined;

  constructor(base: string, options: readonly string[]) {
    this.#socket = `${base}.sock`;
    this.#log = `${base}.log`;
    this.#agent = new nodeHttp.Agent({ keepAlive: true, timeout: abandonedS * 1_000 + 1_000 });
    // Not a pipe: it would be killed by writing to one after the worker is gone.
    const stderr = openSync(this.#log, "w", 0o600);
    const { pid, exited } = startProgram(["podman", "system", "service", ...options, "--time", String(abandonedS), `unix://${this.#socket}`], { stderr });
    this.#pid = pid;
    this.#exited = exited.then(
      (code) => this.#ended(`it ended with ${code}`),
      (error: unknown) => this.#ended(String(error)),
    );
    this.#ready = this.#whenReady();
    this.#ready.catch(() => {});
    // It may end at any time, which the next call finds out.
    this.#staying = setInterval(() => void this.#ping().catch(() => {}), stayMs).unref();
  }

  get hasEnded(): boolean {
    return this.#end !== undefined || this.#isEnding;
  }

  async call(call: Call): Promise<Answer> {
    await this.#ready;
    try {
      return await this.#send(call);
    } catch (error) {
      // It is dead or dying; it must have ended before the call is made again.
      await this.#kill();
      throw this.#lost((error as Error).message);
    }
  }

  /** Has it end after the calls that are under way. */
  async end(): Promise<void> {
    this.#isEnding = true;
    clearInterval(this.#staying);
    const pid = await this.#pid;
    await this.#ready.catch(() => {});
    this.#agent.destroy();
    if (pid !== undefined && this.#end === undefined) attempt(() => process.kill(pid, "SIGTERM"));
    await until(() => this.#end !== undefined, { timeoutMs: endMsMax, pollMs: startPollMs });
    await this.#kill();
  }

  async #whenReady(): Promise<void> {
    const isUp = async (): Promise<boolean> => {
      if (this.#end !== undefined) throw this.#lost("it did not start");
      return this.#ping().then(
        () => true,
        () => false,
      );
    };
    if (await until(isUp, { timeoutMs: startMsMax, pollMs: startPollMs })) return;
    await this.#kill();
    throw this.#lost("it did not start in time");
  }

  #ping(): Promise<Answer> {
    return this.#send({ method: "GET", path: "/_ping" });
  }

  #send({ method, path, query = {}, body }: Call): Promise<Answer> {
    const url = `${root}${path}?${new URLSearchParams(query)}`;
    const text = body && JSON.stringify(body);
    const headers = text ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) } : {};
    return new Promise((resolve, reject) => {
      const sent = nodeHttp.request(url, { method, headers, socketPath: this.#socket, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }));
      });
      const overdue = setTimeout(() => sent.destroy(new Error(`no answer in ${callMsMax} ms`)), callMsMax);
      sent.on("error", reject);
      sent.on("close", () => clearTimeout(overdue));
      sent.end(text);
    });
  }

  #lost(how: string): PodmanLost {
    return new PodmanLost([how, this.#end].filter(Boolean).join("; "));
  }

  async #kill(): Promise<void> {
    const pid = await this.#pid;
    if (pid !== undefined && this.#end === undefined) attempt(() => process.kill(pid, "SIGKILL"));
    await this.#exited;
  }

  #ended(how: string): void {
    const said = attempt(() => readFileSync(this.#log, "utf8"))?.trim();
    clearInterval(this.#staying);
    this.#end = said ? `${how}: ${said.slice(-messageCharactersMax)}` : how;
    this.#agent.destroy();
    for (const file of [this.#socket, this.#log]) rmSync(file, { force: true });
  }
}
