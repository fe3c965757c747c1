/** The product's performance targets, and whether a run meets them. */
import { own, type Row, rowBy, speedAgainst } from "./rows.ts";
import { allAtOnceTask, atOnceTask, burstTasks } from "./scenarios/burst.ts";
import { clientCounts, concurrencyTask } from "./scenarios/concurrency.ts";
import { createTask, deletePeer, deleteTask, firstTask, fromNothing, fromNothingShared, withSharedIds } from "./scenarios/create.ts";
import { executeTask } from "./scenarios/execute.ts";
import { besideExecuteTask } from "./scenarios/fairness.ts";
import { manyTask, smallTasks } from "./scenarios/files.ts";
import { hostileTask, quietContender } from "./scenarios/hostile.ts";
import { listSizes, listTask, steadyTask } from "./scenarios/list.ts";
import { largeCreateTask, largeListTask } from "./scenarios/many.ts";
import { memorySizes, memoryTasks } from "./scenarios/memory.ts";
import { gatewaysTask, oneGateway, socketsTask } from "./scenarios/scale.ts";
import { bareEcho, echoTask, firstByteTask, outputTask, podmanTerminal, sessionCounts, startTask } from "./scenarios/session.ts";
import { cloneTask, largeSize, pauseTask, restoreTask, snapshotSizes, snapshotTask } from "./scenarios/snapshot.ts";
import { overTls, streamTasks } from "./scenarios/stream.ts";

export interface Verdict {
  readonly target: string;
  readonly measured: string;
  readonly met: boolean;
}

/** Judges Sandgate's row beside that of a peer. */
type Judge = (row: Row, peer: Row) => Omit<Verdict, "target">;

/** At least this many times as fast. */
const fasterBy =
  (times: number): Judge =>
  (row, peer) => {
    const speed = speedAgainst(row, peer);
    return { measured: `${speed.toFixed(1)} times`, met: speed >= times };
  };

/** At most this many times as long. */
const atMost =
  (times: number): Judge =>
  (row, peer) => ({ measured: `${(1 / speedAgainst(row, peer)).toFixed(2)} times`, met: 1 / speedAgainst(row, peer) <= times });

/** At least this share of the peer's speed. */
const atLeast =
  (share: number): Judge =>
  (row, peer) => ({ measured: `${Math.round(speedAgainst(row, peer) * 100)} %`, met: speedAgainst(row, peer) >= share });

/** Calls a second. */
const reaches =
  (perSecond: number): Judge =>
  ({ rate }) => ({ measured: `${Math.round(rate?.value ?? 0)} a second`, met: (rate?.value ?? 0) >= perSecond });

/** Commands a second by the most clients, four times what they were when the runtime started each. */
const busyRateMin = 4 * 89;
const busyTask = concurrencyTask(clientCounts[2]);

/** At most so many milliseconds longer. */
const longerBy =
  (msMax: number): Judge =>
  ({ p50 }, peer) => ({ measured: `${(p50 - peer.p50).toFixed(2)} ms`, met: p50 - peer.p50 <= msMax });

/** How many milliseconds longer a keystroke may take than over a bare WebSocket. */
const keystrokeMsMax = 3;

/** What a range of user ids for each sandbox may add to a create. */
const rangesMsMax = 15;
/** The same where the pool has done that before. */
const pooledRangesMsMax = 3;
const pooledRanges: Judge = (row, shared) => {
  const { measured, met } = longerBy(pooledRangesMsMax)(row, shared);
  const isUnknown = typeof shared.speed === "object" && shared.speed.low <= 1 && shared.speed.high >= 1;
  return { measured: isUnknown ? `${measured}, a difference that cannot be told from chance` : measured, met: met || isUnknown };
};

/** Milliseconds a command may take while another sandbox uses all the CPU it can get. */
const besideMsMax = 1_000;
const fair: Judge = ({ p99 }) => ({ measured: `${p99.toFixed(0)} ms`, met: p99 < besideMsMax });

/** Milliseconds for which a snapshot may stop a sandbox, and that it may take, whatever was changed. */
const pauseMsMax = 20;
const snapshotMsMax = 100;

/** The same for a process of 100 MB with its memory, and for a clone of it. */
const memoryPauseMsMax = 400;
const memoryCloneMsMax = 700;
const { pause: memoryPause, clone: memoryClone } = memoryTasks(memorySizes[1].name);

const below =
  (msMax: number, digits: number): Judge =>
  ({ p50 }) => ({ measured: `${p50.toFixed(digits)} ms`, met: p50 < msMax });

const slowestBelow =
  (msMax: number): Judge =>
  ({ p99 }) => ({ measured: `${p99.toFixed(1)} ms`, met: p99 < msMax });

/** Milliseconds of a call at 70 % of what the gateway can answer, and in an installation of many sandboxes and workers. */
const steadyMsMax = 5;
const largeListMsMax = 10;
const largeCreateMsMax = 20;

const takes =
  (MBMax: number): Judge =>
  ({ use }) => ({ measured: `${(use?.value ?? Number.NaN).toFixed(0)} MB`, met: (use?.value ?? Number.NaN) < MBMax });
const socketsMBMax = 200;

/** How many times as long as in quiet a command may take beside a sandbox that floods everything. */
const hostileTimesMax = 2;
/** What the slowest hundredth is as well as it is known: where the range has the border in it, another run may say the other. */
const calm: Judge = (row, { p99, slowest }) => {
  const measured = `${(row.p99 / p99).toFixed(2)} times`;
  const met = row.p99 / p99 <= hostileTimesMax;
  if (typeof slowest !== "object") return { measured, met };
  const { low, high } = slowest;
  const isUnsure = low <= hostileTimesMax && high > hostileTimesMax;
  return { measured: `${measured} (between ${low.toFixed(2)} and ${high.toFixed(2)}${isUnsure ? ", so not sure" : ""})`, met };
};

/** From the call to the end of a first command, where a container waits in the pool. */
const firstMsMax = 20;

/** Milliseconds until all of a burst have answered, and for half of them. */
const burstMsMax = 5_000;
const burstMedianMsMax = 2_500;
const allSucceed =
  (count: number): Judge =>
  ({ n }) => ({ measured: `${count - n} of ${count}`, met: n === count });

/** From the call to the first byte that a program in a new terminal writes. */
const firstByteMsMax = 10;

/** @property contender whose row is judged: Sandgate's with all it has when absent */
type Target = readonly [task: string, peer: string, text: string, judge: Judge, contender?: string];

/** What of the peer's time it may take, with a container from the pool and, as in a burst that outruns the pool, without. */
const atMostBoth = (task: string, peer: string, what: string, times: number): Target[] => {
  const text = `takes at most ${times} times as long as ${peer} (p50)`;
  return [
    [task, peer, `${what} ${text}, with time to fill the pool between`, atMost(times)],
    [task, peer, `${what} from nothing ${text}`, atMost(times), fromNothing],
  ];
};

const targets: readonly Target[] = [
  [executeTask, "podman exec", "execute is at least 20 times as fast as podman exec (p50)", fasterBy(20)],
  ...["crun exec", "runc exec"].map((peer): Target => [executeTask, peer, `execute takes at most 0.5 times as long as ${peer} (p50)`, atMost(0.5)]),
  [busyTask, own, `${busyTask}: at least ${busyRateMin} a second`, reaches(busyRateMin)],
  ...atMostBoth(createTask, "podman run -d", "create", 0.6),
  [createTask, fromNothingShared, `a range of user ids costs a create from nothing at most ${rangesMsMax} ms (p50)`, longerBy(rangesMsMax), fromNothing],
  [createTask, withSharedIds, `a range of user ids costs a create from the pool at most ${pooledRangesMsMax} ms (p50), or not surely anything`, pooledRanges],
  [firstTask, own, `${firstTask}: less than ${firstMsMax} ms (p50), with time to fill the pool between`, below(firstMsMax, 1)],
  ...burstTasks.map(({ task, count }): Target => [task, own, `${task}: none fails`, allSucceed(count)]),
  [allAtOnceTask, own, `${allAtOnceTask}: less than ${burstMsMax / 1_000} s`, below(burstMsMax, 0)],
  [atOnceTask, own, `${atOnceTask}: less than ${burstMedianMsMax / 1_000} s (p50)`, below(burstMedianMsMax, 0)],
  ...atMostBoth(deleteTask, deletePeer, "delete", 0.6),
  [startTask, podmanTerminal, `a session starts at least 5 times as fast as ${podmanTerminal} (p50)`, fasterBy(5)],
  [firstByteTask, own, `${firstByteTask}: less than ${firstByteMsMax} ms (p50)`, below(firstByteMsMax, 1)],
  ...Object.values(streamTasks).map(({ title, peer, shareMin }): Target => {
    return [title, peer, `${title}: at least ${100 * shareMin} % of the speed of ${peer}`, atLeast(shareMin)];
  }),
  [
    streamTasks.output.title,
    streamTasks.output.peer,
    `${streamTasks.output.title} between machines: at least ${100 * streamTasks.output.shareMin} % of the speed of ${streamTasks.output.peer}`,
    atLeast(streamTasks.output.shareMin),
    overTls,
  ],
  ...Object.values(smallTasks).map((task): Target => [task, executeTask, `${task} takes at most 1.5 times as long as ${executeTask} (p50)`, atMost(1.5)]),
  [manyTask, own, `${manyTask}: less than 1 s (p50)`, below(1_000, 0)],
  [outputTask, "podman exec", "a session streams at least a third as fast as podman exec", atLeast(1 / 3)],
  ...listSizes.flatMap((size): Target[] => {
    const text = `list (${size} sandboxes) answers at least 60 % of the calls of bare uWebSockets.js for the same CPU time`;
    return [
      [listTask(size), "bare uWebSockets.js", text, atLeast(0.6)],
      [steadyTask(size), own, `${steadyTask(size)}: less than ${steadyMsMax} ms (p99)`, slowestBelow(steadyMsMax)],
    ];
  }),
  [gatewaysTask, oneGateway, "two gateways answer at least 1.6 times the calls of one, each with a CPU of its own", fasterBy(1.6)],
  [largeListTask, own, `${largeListTask}: less than ${largeListMsMax} ms (p99)`, slowestBelow(largeListMsMax)],
  [largeCreateTask, own, `${largeCreateTask}: less than ${largeCreateMsMax} ms (p99)`, slowestBelow(largeCreateMsMax)],
  [socketsTask, own, `${socketsTask}: less than ${socketsMBMax} MB of the gateway's memory`, takes(socketsMBMax)],
  ...[...snapshotSizes, largeSize].flatMap(({ name }): Target[] => {
    return [
      [snapshotTask(name), "podman commit", `snapshot (${name}) takes at most 1.2 times as long as podman commit (p50)`, atMost(1.2)],
      ...atMostBoth(restoreTask(name), "podman run -d", `restore (${name})`, 0.6),
      ...atMostBoth(cloneTask(name), "podman commit, run -d", `clone (${name})`, 0.6),
      [pauseTask(name), own, `${pauseTask(name)}: less than ${pauseMsMax} ms (p50)`, below(pauseMsMax, 1)],
      [snapshotTask(name), own, `${snapshotTask(name)}: answers in less than ${snapshotMsMax} ms (p50)`, below(snapshotMsMax, 0)],
    ];
  }),
  [memoryPause, own, `${memoryPause}: less than ${memoryPauseMsMax} ms (p50)`, below(memoryPauseMsMax, 0)],
  [memoryClone, own, `${memoryClone}: answers in less than ${memoryCloneMsMax} ms (p50)`, below(memoryCloneMsMax, 0)],
  ...sessionCounts.map((size): Target => {
    const text = `${echoTask(size)}: comes back at most ${keystrokeMsMax} ms later than from a ${bareEcho} (p50)`;
    return [echoTask(size), bareEcho, text, longerBy(keystrokeMsMax)];
  }),
  [besideExecuteTask, own, `${besideExecuteTask}: takes less than ${besideMsMax} ms (p99)`, fair],
  [hostileTask, quietContender, `${hostileTask}: takes at most ${hostileTimesMax} times as long as without (p99)`, calm],
];

/** Checks every target whose scenario was run. */
export function judge(rows: readonly Row[]): Verdict[] {
  return targets.flatMap(([task, peer, target, verdict, contender = own]) => {
    const [row, other] = [rowBy(rows, task, contender), rowBy(rows, task, peer)];
    return row && other ? [{ target, ...verdict(row, other) }] : [];
  });
}
