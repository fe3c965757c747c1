/** Three machines with a NATS server each, which clients use while something is done to them. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { appDir } from "../../shared/programs.mjs";
import { atEnd, fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { isWhole, joined, untilOn } from "../host/cluster-machines.ts";
import { Machine, volumeDir } from "../host/machine.ts";
import { Network } from "../host/network.ts";
import type { Fault } from "./adversary.ts";
import { plan, randomFor, shuffled } from "./plan.ts";

const settings = [
  `SANDGATE_VOLUME=${volumeDir}`,
  "SANDGATE_HOST=0.0.0.0",
  "SANDGATE_KEYS_PER_ACCOUNT=1000",
  "SANDGATE_AUTH_FAILURES_PER_ADDRESS=100000",
  "SANDGATE_POOL_SIZE=0",
];
const firstWorkMs = 5_000;
const pauseMs = 3_000;

/** One of them. */
export interface Member {
  readonly number: number;
  readonly machine: Machine;
}

interface Report {
  readonly counts: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
}

export class ThreeMachines {
  readonly members: readonly Member[];
  readonly #network: Network;
  readonly #key: string;

  private constructor(network: Network, members: readonly Member[], key: string) {
    this.#network = network;
    this.members = members;
    this.#key = key;
  }

  /** For all tests of a file. */
  static async start(): Promise<ThreeMachines> {
    const network = await fixture(Network.start());
    const members = await Promise.all(
      ["one", "two", "three"].map(async (name, index) => ({ number: index + 1, machine: await fixture(Machine.start(name, { network, number: index + 1 })) })),
    );
    const [first, ...others] = members as [Member, ...Member[]];
    await first.machine.install([], [...settings, `SANDGATE_NATS_HOST=${Network.address(first.number)}`]);
    for (const { machine } of others) await joined(machine, first.machine, settings);
    await first.machine.run("sandgate-admin", "cluster", "form", "--yes");
    const machines = new ThreeMachines(network, members, (await first.machine.key()).trim());
    await machines.untilWell("they are a cluster");
    return machines;
  }

  get #urls(): string[] {
    return this.members.map(({ number }) => `http://${Network.address(number)}:8080`);
  }

  /** Resolves when every gateway is ready, and every server has all that it should have. */
  async untilWell(what: string): Promise<void> {
    const machines = this.members.map(({ machine }) => machine);
    for (const [index, machine] of machines.entries()) await untilOn(machine, `gateway ${index + 1}, after ${what}`, () => this.#isReady(index), machines);
    for (const [index, machine] of machines.entries()) await untilOn(machine, `all copies at ${index + 1}, after ${what}`, () => isWhole(machine), machines);
  }

  async #isReady(index: number): Promise<boolean> {
    const url = `${this.#urls[index]}/readyz`;
    return (await this.#network.run("curl", "-sS", "--max-time", "30", "-o", "/dev/null", "-w", "%{http_code}", url)) === "200";
  }

  /**
   * Causes faults in an order that the seed gives, while clients of all gateways work. At the end, what the clients were told is
   * compared with what there is.
   */
  async endure(title: string, faults: readonly Fault[], tell: (line: string) => void): Promise<void> {
    tell(`seed ${plan.seed}; again by: npm test -- faults/${title} --seed ${plan.seed}`);
    const stop = join(fixture(temporaryFolder(title, 0o755)).path, "stop");
    const ending = new AbortController();
    atEnd(() => ending.abort());
    const load = [join(appDir, "node_modules/.bin/tsx"), join(appDir, "test/host/cluster-load.ts"), this.#key, stop, ...this.#urls];
    const loaded = this.#network.runUntil(ending.signal, ...load);
    // It is awaited at the end.
    loaded.catch(() => {});
    await sleep(firstWorkMs);
    const order = shuffled(randomFor(title), faults);
    for (const [index, { name, cause }] of order.slice(0, plan.rounds).entries()) {
      await cause(randomFor(`${title} ${index} ${name}`));
      const startedMs = performance.now();
      await this.untilWell(name);
      tell(`${name}: well again after ${Math.round(performance.now() - startedMs)} ms`);
      await sleep(pauseMs);
    }
    writeFileSync(stop, "");
    const report = JSON.parse((await loaded).trim().split("\n").at(-1) ?? "") as Report;
    tell(JSON.stringify(report.counts));
    assert.deepEqual(report.faults, []);
    assert.ok((report.counts["201"] ?? 0) >= 20, "clients worked");
  }
}
