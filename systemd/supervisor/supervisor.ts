/** Starts the parts in the order of their dependencies, keeps them running, and stops them in reverse. */

import { onAbort, unlessAborted } from "../../shared/abort.ts";
import { settleMemory } from "../../shared/util/settle.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import type { Terminal } from "../base/terminal.ts";
import { defaultImageId } from "../setup/default-image.ts";
import type { NoVolume, Volume } from "../volume/volume.ts";
import { hostChecksOf, printHost, printReady, urlOf, usersCheck, volumeCheck } from "./banner.ts";
import { workerIdOf } from "./bus-identities.ts";
import type { LogLine } from "./log-line.ts";
import { configureNats, waitForNats } from "./nats.ts";
import { natsCheck, natsVersion } from "./nats-version.ts";
import { gatewaySpec, type Wiring, workerSpec } from "./node-parts.ts";
import { manyOpenFiles } from "./open-files.ts";
import { Part, type PartSpec } from "./part.ts";
import type { StopRequest } from "./stop-request.ts";

/** Time to stop, in addition to the time that calls in progress get. */
const graceMs = 15_000;
const patienceMs = 20_000;
/** The longest log line on the terminal; the log file has the whole line. */
const shownCharacters = 500;

/** What must be known before anything is started. */
export interface Plan {
  readonly instance: Instance;
  readonly volume: Volume | NoVolume;
  readonly execServer: string | undefined;
  readonly apiKey: string;
  readonly port: number;
}

export class Supervisor {
  readonly #plan: Plan;
  readonly #terminal: Terminal;
  readonly #stop: StopRequest;
  readonly #parts: Part[] = [];
  readonly #waiting = new Map<string, (line: LogLine) => void>();
  readonly #ready = new Set<string>();
  #prefix: readonly string[] = [];
  #refusal: string | undefined;

  constructor(plan: Plan, terminal: Terminal, stop: StopRequest) {
    this.#plan = plan;
    this.#terminal = terminal;
    this.#stop = stop;
  }

  /**
   * Runs until a stop is asked for.
   *
   * @throws {StartFailure} if a part cannot run with its configuration, or if everything was killed.
   */
  async run(): Promise<void> {
    try {
      await this.#startAll();
      await unlessAborted(this.#stop.signal, new Promise<never>(() => {}));
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      await this.#stopAll();
    }
    if (this.#refusal) throw new StartFailure(this.#refusal);
    if (this.#stop.again.aborted) throw new StartFailure("Ended by force. The next start cleans up what is left.");
    this.#terminal.good("Stopped.");
  }

  async #startAll(): Promise<void> {
    this.#prefix = await manyOpenFiles();
    const { instance, volume, execServer = "", apiKey, port } = this.#plan;
    const { config } = instance;
    const image = (await defaultImageId(instance)) ?? "";
    const wiring: Wiring = { ...(await this.#startBus()), apiKey, port, volume, execServer, defaultImageId: image };
    const [worker, gateway] = await Promise.all([workerSpec(instance, wiring), gatewaySpec(instance, wiring)]);
    const [workerLine] = await Promise.all([this.#startAndWait(worker), this.#startAndWait(gateway)]);
    const bus = config.natsUrl ? [] : [natsCheck(await natsVersion())];
    printHost(this.#terminal, [...hostChecksOf(workerLine.fields), usersCheck(instance.accounts), volumeCheck(volume), ...bus]);
    printReady(this.#terminal, urlOf(config, port), apiKey);
    settleMemory();
  }

  /** Starts the owned NATS server, unless the settings name another. */
  async #startBus(): Promise<Pick<Wiring, "gatewayBus" | "workerBus" | "workerId">> {
    const { instance } = this.#plan;
    const workerId = await workerIdOf(instance);
    if (instance.config.natsUrl) return { gatewayBus: {}, workerBus: {}, workerId };
    const nats = await configureNats(instance, [workerId]);
    this.#start(nats.spec);
    await waitForNats(nats, this.#stop.signal);
    return { gatewayBus: nats.gateway, workerBus: nats.worker(workerId), workerId };
  }

  #start(spec: PartSpec): void {
    const part = new Part(
      { ...spec, argv: [...this.#prefix, ...spec.argv] },
      {
        onLine: (from, line) => this.#heard(from, line),
        onDeath: (from, how, pauseMs) => this.#died(from, how, pauseMs),
        onRefusal: (from, how) => this.#refused(from, how),
      },
    );
    this.#parts.push(part);
    part.start();
  }

  /** Waits for the part's first ready line. */
  async #startAndWait(spec: PartSpec): Promise<LogLine> {
    this.#start(spec);
    const nudge = setTimeout(() => this.#terminal.warn(`${spec.name} is not ready yet; see ${spec.logFile}`), patienceMs);
    const ready = new Promise<LogLine>((resolve) => this.#waiting.set(spec.name, resolve));
    try {
      return await unlessAborted(this.#stop.signal, ready);
    } finally {
      clearTimeout(nudge);
    }
  }

  #heard(part: Part, line: LogLine): void {
    const text = `${part.name}: ${line.text.slice(0, shownCharacters).replaceAll("\n", "\\n")}`;
    if (line.severity === "error") this.#terminal.bad(text);
    // While the parts stop one after the other, they report each other missing; only the log shows that.
    if (line.severity === "warn" && !this.#stop.signal.aborted) this.#terminal.warn(text);
    if (line.fields.event !== "ready") return;
    if (this.#ready.has(part.name)) this.#terminal.good(`${part.name} is back`);
    this.#ready.add(part.name);
    this.#waiting.get(part.name)?.(line);
  }

  #died(part: Part, how: string, pauseMs: number): void {
    this.#terminal.bad(`${part.name} ${how}; it is started again in ${pauseMs / 1_000} s (log: ${part.spec.logFile})`);
  }

  #refused(part: Part, how: string): void {
    this.#refusal = `${part.name} cannot run: it ${how} (log: ${part.spec.logFile})`;
    this.#stop.ask(this.#refusal);
  }

  /** Stops the gateway first, so that no call reaches a stopping worker, and NATS last, because both announce their end over it. */
  async #stopAll(): Promise<void> {
    if (this.#stop.signal.aborted) this.#terminal.line("Stopping…");
    const killAll = () => this.#parts.forEach((part) => part.kill());
    onAbort(this.#stop.again, killAll);
    for (const part of this.#parts.toReversed()) await part.stop(this.#plan.instance.config.drainMs + graceMs);
  }
}
