/**
 * Workers of which only the containers are missing. Each has its own identity on the bus, claims its id, beats, stores the entries
 * of its sandboxes and answers, all by the code of real workers. Takes what `FleetOrder` says as JSON; prints a line when the
 * gateways can have heard of all.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { type Answers, answer } from "../../shared/bus/calls.ts";
import { workerAccess } from "../../shared/bus/connect.ts";
import { type Request, verbsOf } from "../../shared/bus/contract/contract.ts";
import { SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import type { WorkerPresence } from "../../shared/bus/heartbeat.ts";
import { Bus } from "../../shared/bus/nats.ts";
import { PeerWatch } from "../../shared/bus/presence.ts";
import { untilStorageIsThere } from "../../shared/bus/storage.ts";
import { buckets, peers as names, processOfWorker } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { StreamHub } from "../../shared/stream/hub.ts";
import { detachTimeoutDefaultS } from "../../shared/stream/session/protocol.ts";
import { Stream } from "../../shared/stream/stream.ts";
import { newId, shortOf } from "../../shared/util/ids.ts";
import { createLogger } from "../../shared/util/log.ts";
import { snapshotEntry } from "../../test/helpers/snapshot-entry.ts";
import { Claim } from "../../worker/claim.ts";
import { Counters } from "../../worker/counters.ts";
import { StallWatch } from "../../worker/stall.ts";
import { OwnEntries } from "../../worker/store/entries.ts";

/** What the fleet is told. */
export interface FleetOrder {
  readonly natsUrl: string;
  /** The file with the server's certificate. */
  readonly natsCa: string;
  /** The workers, and where the secrets of each are. */
  readonly workers: readonly { readonly id: string; readonly secretsFile: string }[];
}

const log = createLogger("worker", "error");
const stalls = new StallWatch();
const startsAtOnce = 10;
const GiB = 1024 ** 3;
/** What is streamed, as workers send it. */
const piece = Buffer.alloc(64 * 1024);

class PlayedWorker {
  readonly #id: string;
  readonly #hub: StreamHub;
  readonly #entries: OwnEntries<SandboxEntry>;
  readonly #snapshots: OwnEntries<SnapshotEntry>;
  readonly #counters = new Counters();
  readonly #sandboxes = new Map<string, SandboxEntry>();

  private constructor(id: string, hub: StreamHub, entries: OwnEntries<SandboxEntry>, snapshots: OwnEntries<SnapshotEntry>) {
    this.#id = id;
    this.#hub = hub;
    this.#entries = entries;
    this.#snapshots = snapshots;
  }

  static async join({ natsUrl, natsCa }: FleetOrder, { id, secretsFile }: FleetOrder["workers"][number]): Promise<void> {
    const access = workerAccess({ natsNkey: readFileSync(secretsFile, "utf8"), natsCa }, id);
    const bus = await Bus.connect(natsUrl, `sandgate-worker-${id}`, log, access.calls);
    const storage = await Bus.connect(natsUrl, `sandgate-storage-${id}`, log, access.storage);
    await untilStorageIsThere(storage, log);
    const peers = new PeerWatch(bus, names.worker(id, newId("worker")), log);
    const claim = await Claim.take(storage, { workerId: id, home: { id: newId("home"), file: "", bootId: id }, peer: peers.peer, stalls });
    const parts = { bus: storage, workerId: id, claim, log };
    const entries = await OwnEntries.open(buckets.sandboxes, checker(SandboxEntry), parts);
    const snapshots = await OwnEntries.open(buckets.snapshots, checker(SnapshotEntry), parts);
    const worker = new PlayedWorker(id, new StreamHub(bus, peers, log, 0), entries, snapshots);
    answer(bus, "worker", processOfWorker(peers.peer), worker.#answers());
    peers.start(() => ({ worker: worker.#presence(claim.epoch) }));
    await bus.connection.flush();
  }

  #answers(): Answers<"worker"> {
    const refuse = (): never => {
      throw new SandgateError("unavailable", "this worker runs nothing");
    };
    return {
      ...(Object.fromEntries(verbsOf("worker").map((verb) => [verb, refuse])) as unknown as Answers<"worker">),
      create: (request) => this.#create(request),
      delete: async ({ sandbox_id }) => {
        if (!this.#sandboxes.delete(sandbox_id)) throw errors.notFound("sandbox", sandbox_id);
        await this.#entries.delete(sandbox_id);
        return {};
      },
      sessionAttach: (request) => this.#attach(request),
      snapshot: (request) => this.#snapshot(request),
      deleteSnapshot: async ({ snapshot_id }) => {
        await this.#snapshots.delete(snapshot_id);
        return {};
      },
      download: (request) => this.#download(request),
    };
  }

  /** Stores the entry twice, as every worker does: before the sandbox is made, and before it is acknowledged. */
  async #create(request: Request<"create">): Promise<SandboxEntry> {
    const done = this.#counters.creates.start();
    const id = newId("sandbox");
    const { account_id, key_id, image, cpu, memory, storage, network, reservation_id, name = `sandbox-${shortOf(id)}` } = request;
    const made = { id, name, account_id, key_id, worker_id: this.#id, image, created_at_ms: Date.now(), cpu, memory, storage, network };
    const entry: SandboxEntry = { ...made, ...(reservation_id ? { reservation_id } : {}), status: "running" };
    await this.#entries.put(id, { ...entry, status: "creating" });
    await this.#entries.put(id, entry);
    this.#sandboxes.set(id, entry);
    done();
    return entry;
  }

  /** Stores the entry twice, as every worker does: before the snapshot is taken, and when it is ready. */
  async #snapshot({ account_id, sandbox_id, attempt_id, name = "snapshot" }: Request<"snapshot">): Promise<SnapshotEntry> {
    const of = { account_id, worker_id: this.#id, source_sandbox_id: sandbox_id, source_sandbox_name: name, attempt_id };
    const entry = snapshotEntry({ ...of, name, created_at_ms: Date.now(), archived: "local" });
    await this.#snapshots.put(entry.id, { ...entry, status: "creating" });
    await this.#snapshots.put(entry.id, entry);
    return entry;
  }

  /** Sends a file of as many bytes as its name says. */
  #download({ path, to }: Request<"download">): { size: number } {
    const size = Number(basename(path));
    const stream = Stream.answer(this.#hub, to);
    const send = async (): Promise<void> => {
      for (let left = size; left > 0; left -= piece.length) await stream.write(piece.subarray(0, left));
      stream.end({});
    };
    send().catch((err) => log.error({ err }, "a file could not be sent"));
    return { size };
  }

  /** Attaches to a session that is there and says nothing. */
  #attach({ session_id, to }: Request<"sessionAttach">): object {
    const silent = { bytes: () => {}, message: () => {}, ended: () => {}, broken: () => {} };
    const begun = { tty: true, cols: 80, rows: 24, writer: false, offset: 0, output_offset: 0, input_offset: 0, detach_timeout: detachTimeoutDefaultS };
    Stream.answer(this.#hub, to, { listener: silent }).say({ type: "started", session_id, ...begun });
    return {};
  }

  /** As long as that of a worker with work. */
  #presence(epoch: number): WorkerPresence {
    const { executions, sessions } = this.#counters;
    return {
      ...{ id: this.#id, epoch, draining: false, accepts: true, images: [], strong: false },
      ...{ sandboxes: this.#sandboxes.size, sandboxes_max: 1_000, executions: 0, executions_total: executions, sessions: 0, sessions_total: sessions },
      ...{ memory_free_bytes: 256 * GiB, disk_free_bytes: 1_024 * GiB, load_per_cpu: 0.5, rss_bytes: GiB / 8 },
      snapshots: { taken: 0, pause_ms_total: 0, pause_ms_max: 0, archive_pending_bytes: 0 },
      metrics: this.#counters.metrics(2),
      host: Array.from({ length: 12 }, (_, index) => ({ name: `check ${index}`, value: "works as on the machine of a worker", ok: true })),
    };
  }
}

const order = JSON.parse(process.argv[2] ?? "") as FleetOrder;
const waiting = [...order.workers];
const startWaiting = async (): Promise<void> => {
  for (let next = waiting.pop(); next; next = waiting.pop()) await PlayedWorker.join(order, next);
};
await Promise.all(Array.from({ length: startsAtOnce }, startWaiting));
process.stdout.write("ready\n");

// Exits with the parent process.
process.stdin.resume().once("end", () => process.exit());
