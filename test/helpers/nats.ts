/** A bare nats-server with JetStream for tests of single parts, on a port and a directory of its own. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bus } from "../../shared/bus/nats.ts";
import { PeerWatch } from "../../shared/bus/presence.ts";
import { StreamHub } from "../../shared/stream/hub.ts";
import { newId } from "../../shared/util/ids.ts";
import { createLogger } from "../../shared/util/log.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { testPort } from "./ports.ts";
import { TestProcess } from "./process.ts";

const host = "127.0.0.1";

/** A logger that discards everything. */
export const quiet = createLogger("test", "silent");

export class TestNats {
  readonly url: string;
  /** The process, which tests can kill and restart; port and data stay the same. */
  readonly server: TestProcess;
  readonly #dir: string;
  readonly #config: string;
  readonly #opened: (() => Promise<void> | void)[] = [];

  /** Where connections of this server go on when it is away. */
  readonly others: string[] = [];

  /** @param conf its configuration */
  constructor(port: number, conf = "") {
    this.#dir = mkdtempSync(join(tmpdir(), "sandgate-nats-"));
    this.#config = join(this.#dir, "nats.conf");
    writeFileSync(this.#config, conf);
    this.url = `nats://${host}:${port}`;
    this.server = new TestProcess({
      name: "nats-server",
      argv: ["nats-server", "--addr", host, "--port", String(port), "--jetstream", "--store_dir", this.#dir, "--config", this.#config],
      env: { PATH: searchPath },
      cwd: "/",
      logFile: join(this.#dir, "log"),
      isReady: (line) => line.includes("Server is ready"),
    });
  }

  /** Makes the running server load another configuration, given in its own format. */
  configure(text: string): void {
    writeFileSync(this.#config, text);
    this.server.signal("SIGHUP");
  }

  /** A connection that is closed with the server. */
  async connect(): Promise<Bus> {
    const bus = await Bus.connect([this.url, ...this.others].join(","), "test", quiet);
    this.#opened.push(() => bus.close());
    return bus;
  }

  /** What a process of the product has on the bus: a connection, presence and streams. @param windowsBytesMax as `StreamHub` has it */
  async member(windowsBytesMax = 0): Promise<{ bus: Bus; peers: PeerWatch; hub: StreamHub }> {
    const bus = await this.connect();
    const peers = new PeerWatch(bus, newId("gateway"), quiet);
    this.#opened.push(() => peers.leave());
    const hub = new StreamHub(bus, peers, quiet, windowsBytesMax);
    peers.start(() => ({}));
    return { bus, peers, hub };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#opened.splice(0).reverse()) await close();
    await this.server.kill9();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Several servers that are a cluster, each with a store of its own. */
export class TestCluster implements AsyncDisposable {
  readonly servers: readonly TestNats[];

  constructor(servers: readonly TestNats[]) {
    this.servers = servers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.servers) await server[Symbol.asyncDispose]();
  }
}

/** Starts three. They may need some seconds to find each other. */
export async function startCluster(): Promise<TestCluster> {
  const ports: number[] = [];
  for (let count = 0; count < 6; count++) ports.push(await testPort());
  const clusterPorts = ports.slice(3);
  const routes = clusterPorts.map((port) => `nats://${host}:${port}`);
  const servers = clusterPorts.map(
    (port, index) =>
      new TestNats(
        ports[index] ?? 0,
        JSON.stringify({ server_name: `n${index}`, cluster: { name: "test", listen: `${host}:${port}`, routes, no_advertise: true } }),
      ),
  );
  for (const server of servers) server.others.push(...servers.filter((one) => one !== server).map(({ url }) => url));
  const cluster = new TestCluster(servers);
  try {
    await Promise.all(servers.map(({ server }) => server.start()));
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

export async function startNats(): Promise<TestNats> {
  const nats = new TestNats(await testPort());
  await nats.server.start();
  return nats;
}
