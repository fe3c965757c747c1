/** The workers, with their sandboxes and snapshots. */
import { SandboxEntry, SnapshotEntry } from "../../shared/bus/entries.ts";
import { makeLayerStore } from "../../shared/bus/storage.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Base } from "../base.ts";
import { Absences } from "./absences.ts";
import { Claims } from "./claims.ts";
import { Dispatcher } from "./dispatch.ts";
import { EntryMirror } from "./entries.ts";
import { LayerCollector } from "./layers.ts";
import { openLines } from "./lines.ts";
import { Moves } from "./moves.ts";
import { SandboxDirectory } from "./sandboxes.ts";
import { SnapshotDirectory } from "./snapshots.ts";

export type Fleet = Readonly<Awaited<ReturnType<typeof openFleet>>>;

/** Loads the directory into memory. */
export async function openFleet(base: Base) {
  const { config, bus, peers, log, shutdown } = base;
  shutdown.onStop("lines", await openLines(base));
  await makeLayerStore(bus, config.snapshotArchiveBytesMax);
  const sandboxes = await EntryMirror.watch(bus, buckets.sandboxes, checker(SandboxEntry), log);
  shutdown.onStop("sandboxes", () => sandboxes.stop());
  const snapshots = await EntryMirror.watch(bus, buckets.snapshots, checker(SnapshotEntry), log);
  shutdown.onStop("snapshots", () => snapshots.stop());
  const layers = await LayerCollector.open(bus, layersOnTheirWay(sandboxes));
  const claims = await Claims.watch(bus, log);
  shutdown.onStop("claims", () => claims.stop());
  const workers = new Dispatcher(bus, peers, claims, config);
  const absences = new Absences({ sandboxes, workers, peers, graceMs: config.workerGraceMs, log });
  shutdown.onStop("absences", () => absences.stop());
  const snapshotDirectory = new SnapshotDirectory(snapshots, layers);
  return {
    workers,
    claims,
    sandboxes: new SandboxDirectory(sandboxes),
    snapshots: snapshotDirectory,
    moves: new Moves({ sandboxes, snapshots: snapshotDirectory, workers, claims, peer: peers.peer, log }),
    /** The storage behind the directories, for clean-up tasks. */
    storage: { sandboxes, snapshots, layers },
  };
}

/**
 * Returns what finds the layers that the object store keeps, under the name of a worker, for sandboxes that are about to leave it. These
 * are known at every moment, since every deletion of a snapshot asks, and an installation has very many other sandboxes.
 */
function layersOnTheirWay(sandboxes: EntryMirror<SandboxEntry>): (workerId: string) => Promise<readonly string[]> {
  const moving = new Map<string, SandboxEntry>();
  const take = (id: string, entry: SandboxEntry | undefined): void => {
    if (entry?.move) moving.set(id, entry);
    else moving.delete(id);
  };
  for (const entry of sandboxes.values()) take(entry.id, entry);
  sandboxes.onChange(take);
  return async (workerId) => {
    await sandboxes.caughtUp();
    return [...moving.values(), ...sandboxes.given()].flatMap(({ worker_id, move, handed_over }) =>
      worker_id === workerId && move?.from === workerId && !handed_over ? (move.layers ?? []) : [],
    );
  };
}
