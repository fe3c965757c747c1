/** Machines that do not hear each other for a while, in both directions or in one, while clients reach all of them. */
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "../host/cluster-machines.ts";
import { deafen, heal } from "../host/deafness.ts";
import type { Fault } from "./adversary.ts";
import { between, type Random, shuffled } from "./plan.ts";
import { ThreeMachines } from "./three-machines.ts";

const cutMs = { least: 5_000, most: 25_000 };

const machines = await ThreeMachines.start();

type Trio = [one: Member, other: Member, third: Member];

/** @param cut makes machines deaf; which of them are which is left to chance */
const partition = (name: string, cut: (trio: Trio) => Promise<unknown>): Fault => ({
  name,
  cause: async (random: Random) => {
    try {
      await cut(shuffled(random, machines.members) as Trio);
      await sleep(between(random, cutMs.least, cutMs.most));
    } finally {
      await Promise.all(machines.members.map(({ machine }) => heal(machine)));
    }
  },
});

const partitions = [
  partition("one does not hear another", ([one, other]) => deafen(one.machine, [other.number])),
  partition("two do not hear each other", ([one, other]) => Promise.all([deafen(one.machine, [other.number]), deafen(other.machine, [one.number])])),
  partition("one hears nobody", ([one, other, third]) => deafen(one.machine, [other.number, third.number])),
  partition("nobody hears one", ([one, other, third]) => Promise.all([other, third].map(({ machine }) => deafen(machine, [one.number])))),
  partition("one and the others do not hear each other", ([one, other, third]) =>
    Promise.all([deafen(one.machine, [other.number, third.number]), ...[other, third].map(({ machine }) => deafen(machine, [one.number]))]),
  ),
  partition("nobody hears anybody", (trio) =>
    Promise.all(
      trio.map(({ machine, number }) =>
        deafen(
          machine,
          trio.map((each) => each.number).filter((each) => each !== number),
        ),
      ),
    ),
  ),
];

test("whoever does not hear whom, what clients were told is so, and everything comes back by itself", { timeout: 1_500_000 }, async (context) => {
  await machines.endure("partitions", partitions, (line) => context.diagnostic(line));
});
