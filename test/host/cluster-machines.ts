/** What tests ask of machines with NATS servers. */
import { until } from "../helpers/until.ts";
import type { Machine } from "./machine.ts";

interface Status {
  readonly nodes: readonly { readonly id: string; readonly host: string; readonly state: string; readonly copies: number; readonly current: number }[];
  readonly streams: number;
  readonly complete: number;
}

export const statusOf = async (machine: Machine): Promise<Status> => JSON.parse(await machine.run("sandgate-admin", "cluster", "--json")) as Status;

/** Whether every server has a copy of everything that it should have. */
export async function isWhole(machine: Machine): Promise<boolean> {
  const { streams, complete } = await statusOf(machine);
  return streams > 0 && complete === streams;
}

/** Lets a machine join the installation of another, with a NATS server of its own. @returns what the installation says */
export async function joined(machine: Machine, other: Machine, settings: readonly string[]): Promise<string> {
  const token = (await other.run("sandgate-admin", "join-token", "--role", "all")).trim().split(" ").at(-1) ?? "";
  return machine.install(["--join", token], settings);
}

/** What a machine has complained of last, for the message of a failure. */
const complaints = (machine: Machine): Promise<string> =>
  machine.shell(
    'sandgate-admin cluster; curl -sS http://127.0.0.1:8080/readyz; for part in gateway worker cluster nats; do journalctl -t sandgate-$part -o cat --no-pager -n 400 | grep -E \'"level":"(warn|error|fatal)|WRN|ERR\' | tail -n 12 | cut -c 1-400; done',
  );

/** Waits, and says what the machine, and others that matter, have complained of when that was in vain. */
export async function untilOn(machine: Machine, what: string, ask: () => Promise<boolean>, others: readonly Machine[] = []): Promise<void> {
  await until(what, ask, 180_000).catch(async (error: Error) => {
    const said = await Promise.all([machine, ...others].map((each) => complaints(each).catch(String)));
    throw new Error([error.message, ...said].join("\n\n"));
  });
}
