/** Three machines for an installation with three NATS servers, and what tests ask of them. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { plan } from "../faults/plan.ts";
import { atEnd, fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { Machine, volumeDir } from "./machine.ts";
import { Network } from "./network.ts";

const settings = [
  `SANDGATE_VOLUME=${volumeDir}`,
  "SANDGATE_HOST=0.0.0.0",
  "SANDGATE_KEYS_PER_ACCOUNT=1000",
  "SANDGATE_AUTH_FAILURES_PER_ADDRESS=100000",
  "SANDGATE_POOL_SIZE=0",
];
/** What clients make at the least while they work. */
const madeMin = 20;

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

/** One of them. */
export interface Member {
  readonly number: number;
  readonly machine: Machine;
}

interface Report {
  readonly counts: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
}

export class ClusterMachines {
  readonly network: Network;
  readonly members: readonly [Member, Member, Member];
  #key: string | undefined;

  private constructor(network: Network, members: readonly [Member, Member, Member]) {
    this.network = network;
    this.members = members;
  }

  /** For all tests of a file. Nothing is installed on them yet. */
  static async start(): Promise<ClusterMachines> {
    const network = await fixture(Network.start());
    const start = async (name: string, number: number): Promise<Member> => ({ number, machine: await fixture(Machine.start(name, { network, number })) });
    return new ClusterMachines(network, await Promise.all([start("one", 1), start("two", 2), start("three", 3)]));
  }

  /** Installs everything on the first. */
  async installFirst(): Promise<void> {
    const [{ machine, number }] = this.members;
    await machine.install([], [...settings, `SANDGATE_NATS_HOST=${Network.address(number)}`]);
  }

  /** Lets a machine join the installation of another, with a NATS server of its own. @returns what the installation says */
  async join(machine: Machine, other: Machine): Promise<string> {
    const token = (await other.run("sandgate-admin", "join-token", "--role", "all")).trim().split(" ").at(-1) ?? "";
    return machine.install(["--join", token], settings);
  }

  /** The operator's, the same on all machines. */
  async key(): Promise<string> {
    this.#key ??= (await this.members[0].machine.key()).trim();
    return this.#key;
  }

  /** Calls the gateway with this number from beside the machines. */
  client(number: number): Client {
    return new Client(
      (...argv) => this.network.run(...argv),
      urlOf(number),
      () => this.key(),
    );
  }

  /** The status and the head of what a gateway answers. */
  async answer(number: number, path: string): Promise<{ status: string; head: string }> {
    const call = ["curl", "-sS", "--max-time", "60", "-o", "/dev/null", "-D", "-", "-H", `x-api-key: ${await this.key()}`, `${urlOf(number)}${path}`];
    const head = await this.network.run(...call);
    return { status: head.split(" ")[1] ?? "", head };
  }

  async isReady(number: number): Promise<boolean> {
    return (await this.answer(number, "/readyz")).status === "200";
  }

  /** Resolves when every gateway is ready. @param what has happened, for the message of a failure */
  async untilReady(what: string): Promise<void> {
    for (const { machine, number } of this.members) await untilOn(machine, `gateway ${number}, after ${what}`, () => this.isReady(number), this.#machines);
  }

  /** Resolves when every gateway is ready, and every server has all that it should have. */
  async untilWell(what: string): Promise<void> {
    await this.untilReady(what);
    for (const { machine, number } of this.members) await untilOn(machine, `all copies at ${number}, after ${what}`, () => isWhole(machine), this.#machines);
  }

  /**
   * Has clients of all gateways work, as the seed of the run has it.
   *
   * @returns what ends that, and asserts that all is as they were told; resolves to how their calls ended
   */
  async load(): Promise<() => Promise<Report["counts"]>> {
    const stop = join(fixture(temporaryFolder("load", 0o755)).path, "stop");
    const ending = new AbortController();
    atEnd(() => ending.abort());
    const urls = this.members.map(({ number }) => urlOf(number));
    const seeded = ["env", `TEST_FAULTS=${JSON.stringify(plan)}`];
    const program = [...seeded, join(appDir, "node_modules/.bin/tsx"), join(appDir, "test/host/cluster-load.ts"), await this.key(), stop, ...urls];
    const loaded = this.network.runUntil(ending.signal, ...program);
    // It is awaited at the end.
    loaded.catch(() => {});
    return async () => {
      writeFileSync(stop, "");
      const { counts, faults } = JSON.parse((await loaded).trim().split("\n").at(-1) ?? "") as Report;
      assert.deepEqual(faults, []);
      assert.ok((counts["201"] ?? 0) >= madeMin, `clients worked: ${JSON.stringify(counts)}`);
      return counts;
    };
  }

  get #machines(): Machine[] {
    return this.members.map(({ machine }) => machine);
  }
}

const urlOf = (number: number): string => `http://${Network.address(number)}:8080`;

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
