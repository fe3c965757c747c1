/** Three machines with a NATS server each, which clients use while something is done to them. */
import { setTimeout as sleep } from "node:timers/promises";
import { ClusterMachines, type Member } from "../host/cluster-machines.ts";
import { type Holdings, holdingsOf, untilHeld, untilHolds } from "../host/holdings.ts";
import type { Fault } from "./adversary.ts";
import { plan, randomFor, shuffled } from "./plan.ts";

const firstWorkMs = 5_000;
const pauseMs = 3_000;

export class ThreeMachines {
  readonly #machines: ClusterMachines;

  private constructor(machines: ClusterMachines) {
    this.#machines = machines;
  }

  /** For all tests of a file. */
  static async start(): Promise<ThreeMachines> {
    const machines = await ClusterMachines.start();
    const [first, ...others] = machines.members;
    await machines.installFirst();
    for (const { machine } of others) await machines.join(machine, first.machine);
    await first.machine.run("sandgate-admin", "cluster", "form", "--yes");
    await machines.untilWell("they are a cluster");
    return new ThreeMachines(machines);
  }

  get members(): readonly Member[] {
    return this.#machines.members;
  }

  /**
   * Causes faults in an order that the seed gives, while clients of all gateways work. At the end, what the clients were told is
   * compared with what there is, and what each machine holds, once all sandboxes are deleted, with what it held before.
   */
  async endure(title: string, faults: readonly Fault[], tell: (line: string) => void): Promise<void> {
    tell(`seed ${plan.seed}; again by: npm test -- faults/${title} --seed ${plan.seed}`);
    const before = await Promise.all(this.members.map(({ machine }) => holdingsOf(machine)));
    const end = await this.#machines.load();
    await sleep(firstWorkMs);
    await untilHeld(
      this.members.map(({ machine }) => machine),
      before,
    );
    const order = shuffled(randomFor(title), faults);
    for (const [index, { name, cause }] of order.slice(0, plan.rounds).entries()) {
      await cause(randomFor(`${title} ${index} ${name}`));
      const startedMs = performance.now();
      await this.#machines.untilWell(name);
      tell(`${name}: well again after ${Math.round(performance.now() - startedMs)} ms`);
      await sleep(pauseMs);
    }
    tell(JSON.stringify(await end()));
    await Promise.all(this.members.map(({ machine }, index) => untilHolds(machine, before[index] as Holdings)));
  }
}
