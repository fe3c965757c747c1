/**
 * Metrics of the NATS servers, as far as each tells of the account that gateways and workers are in: how many are connected to it,
 * and of whom it has let go because they did not keep up. That takes no right in the server's own account.
 */
import type { Msg } from "@nats-io/transport-node";
import { Counter, Gauge, type Registry } from "prom-client";
import Type, { type Static } from "typebox";
import { decodeJson, messageChecker } from "../../shared/bus/messages.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { accountStatistics } from "../../shared/bus/subjects.ts";
import { collect, type Reading } from "./collect.ts";

/** Each server answers at once; nobody knows how many there are. */
const stallMs = 200;
const askMs = 1_000;

const Statistics = Type.Object({
  server: Type.Object({ name: Type.String(), cluster: Type.Optional(Type.String()) }),
  data: Type.Object({ account_statz: Type.Array(Type.Object({ conns: Type.Integer(), slow_consumers: Type.Integer() })) }),
});
type Statistics = Static<typeof Statistics>;
type OfAccount = Statistics["data"]["account_statz"][number];
const check = messageChecker(Statistics, "the statistics of an account");

type Told = readonly [server: string, statistics: OfAccount];

/** Registers them. @returns a function that asks for them anew, and never throws */
export function tellOfServers(registry: Registry, bus: Bus): () => Promise<void> {
  let told: readonly Told[] = [];
  const tell = (Kind: typeof Gauge | typeof Counter, name: string, help: string, read: (statistics: OfAccount) => number): void => {
    const readings = (): Reading[] => told.map(([server, statistics]) => [{ server }, read(statistics)]);
    collect(registry, Kind, `sandgate_nats_${name}`, help, readings, "server");
  };
  tell(Gauge, "connections", "Connections of gateways, workers and commands of root to the NATS server.", ({ conns }) => conns);
  const help = "Connections that the NATS server has closed because they took too long to take what was for them.";
  tell(Counter, "slow_consumers_total", help, ({ slow_consumers }) => slow_consumers);
  return async () => {
    told = await ask(bus);
  };
}

/** What servers say that does not answer is nothing. */
async function ask(bus: Bus): Promise<Told[]> {
  const told: Told[] = [];
  try {
    await bus.whileConnected(async () => {
      const answers = await bus.connection.requestMany(accountStatistics, "", { strategy: "stall", stall: stallMs, maxWait: askMs });
      for await (const answer of answers) told.push(...statisticsIn(answer));
    });
  } catch {
    // The bus is away, or the server of another kind.
  }
  return told;
}

function statisticsIn({ data }: Msg): Told[] {
  const { server, data: statistics } = check(decodeJson(data));
  // One that is alone has another name after each start.
  const name = server.cluster === undefined ? "nats" : server.name;
  return statistics.account_statz.map((ofAccount) => [name, ofAccount]);
}
