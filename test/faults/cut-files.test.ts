/** Files of a NATS server that are cut short while it is down: what the others have is copied to it again. */
import { test } from "node:test";
import type { Machine } from "../host/machine.ts";
import type { Fault } from "./adversary.ts";
import { oneOf, type Random, shuffled } from "./plan.ts";
import { type Member, ThreeMachines } from "./three-machines.ts";

const service = "sandgate-nats.service";
const store = "/var/lib/sandgate/nats";
const filesMax = 8;
/** By the names that the server gives them. */
const kinds = {
  "files of messages": "*.blk",
  "files with the state of streams": "index.db",
  "descriptions of streams and groups": "meta.inf",
  "files of the groups' terms and votes": "tav.idx",
};

const machines = await ThreeMachines.start();
// It has no time to write anything as it ends.
for (const { machine } of machines.members) {
  const folder = `/run/systemd/system/${service}.d`;
  await machine.shell(`mkdir -p ${folder}; printf '[Service]\\nKillSignal=SIGKILL\\n' > ${folder}/at-once.conf; systemctl daemon-reload`);
}

/** Cuts some of the files with this name. @returns how many */
async function cutShort(machine: Machine, name: string, random: Random): Promise<number> {
  const found = (await machine.run("find", store, "-name", name, "-size", "+0", "-printf", "%s %p\\n")).split("\n").filter(Boolean);
  const chosen = shuffled(random, found).slice(0, filesMax);
  for (const line of chosen) {
    const [size = "", ...path] = line.split(" ");
    await machine.run("truncate", "--size", String(Math.floor(random() * Number(size))), path.join(" "));
  }
  return chosen.length;
}

const cuts = Object.entries(kinds).map(
  ([what, name]): Fault => ({
    name: `${what} are cut short`,
    cause: async (random) => {
      const { machine } = oneOf(random, machines.members) as Member;
      await machine.run("systemctl", "stop", service);
      const count = await cutShort(machine, name, random);
      await machine.run("systemctl", "start", service);
      if (count === 0) throw new Error(`there are no ${what} (${name})`);
    },
  }),
);

test("whichever files of a server are cut short, what clients were told is so, and it has everything again", { timeout: 1_500_000 }, async (context) => {
  await machines.endure("cut-files", cuts, (line) => context.diagnostic(line));
});
