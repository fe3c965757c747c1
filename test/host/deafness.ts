/** Machines that do not hear others: a cut in one direction. */
import type { Machine } from "./machine.ts";
import { Network } from "./network.ts";

const table = "deafness";

/** Has a machine drop all that these others send to it, beside those that it does not hear yet. */
export async function deafen(machine: Machine, numbers: readonly number[]): Promise<void> {
  const from = numbers.map(Network.address).join(", ");
  const chain = "{ type filter hook prerouting priority -300; }";
  await machine.onItsNetwork("nft", `add table ip ${table}; add chain ip ${table} unheard ${chain}; add rule ip ${table} unheard ip saddr { ${from} } drop`);
}

/** Has it hear everybody again. */
export async function heal(machine: Machine): Promise<void> {
  await machine.onItsNetwork("nft", `add table ip ${table}; delete table ip ${table}`);
}
