/** The product's performance targets, and whether a run meets them. */
import { ownRow, type Row, speedAgainst } from "./rows.ts";
import { createTask } from "./scenarios/create.ts";
import { executeTask } from "./scenarios/execute.ts";
import { besideExecuteTask } from "./scenarios/fairness.ts";
import { hostileTask, quietContender } from "./scenarios/hostile.ts";
import { listSizes, listTask } from "./scenarios/list.ts";
import { bareEcho, echoTask, podmanTerminal, sessionCounts, startTask } from "./scenarios/session.ts";
import { cloneTask, largeSize, pauseTask, restoreTask, snapshotSizes, snapshotTask } from "./scenarios/snapshot.ts";

export interface Verdict {
  readonly target: string;
  readonly measured: string;
  readonly met: boolean;
}

interface Target {
  readonly task: string;
  readonly peer: string;
  readonly text: string;
  /** How many times as fast as the peer it must be at least. */
  readonly speedMin: number;
  readonly show: (speed: number) => string;
}

const targets: readonly Target[] = [
  {
    task: executeTask,
    peer: "podman exec",
    text: "execute is at least 5 times as fast as podman exec (p50)",
    speedMin: 5,
    show: (speed) => `${speed.toFixed(1)} times`,
  },
  {
    task: createTask,
    peer: "podman run -d",
    text: "create takes at most 1.3 times as long as podman run -d (p50)",
    speedMin: 1 / 1.3,
    show: (speed) => `${(1 / speed).toFixed(2)} times`,
  },
  {
    task: startTask,
    peer: podmanTerminal,
    text: `a session starts at least 5 times as fast as ${podmanTerminal} (p50)`,
    speedMin: 5,
    show: (speed) => `${speed.toFixed(1)} times`,
  },
  ...listSizes.map((size) => ({
    task: listTask(size),
    peer: "bare uWebSockets.js",
    text: `list (${size} sandboxes) answers at least 50 % of the calls/s of bare uWebSockets.js`,
    speedMin: 0.5,
    show: (speed: number) => `${Math.round(speed * 100)} %`,
  })),
];

const snapshotTargets = [...snapshotSizes, largeSize].flatMap(({ name }): Target[] => {
  const atMost = (task: string, peer: string, what: string, times: number): Target => ({
    task,
    peer,
    text: `${what} (${name}) takes at most ${times} times as long as ${peer} (p50)`,
    speedMin: 1 / times,
    show: (speed) => `${(1 / speed).toFixed(2)} times`,
  });
  return [
    atMost(snapshotTask(name), "podman commit", "snapshot", 1.2),
    atMost(restoreTask(name), "podman run -d", "restore", 1.3),
    atMost(cloneTask(name), "podman commit, run -d", "clone", 1),
  ];
});

/** How many milliseconds longer a keystroke may take than over a bare WebSocket. */
const keystrokeMsMax = 3;

function judgeKeystrokes(rows: readonly Row[]): Verdict[] {
  return sessionCounts.flatMap((size) => {
    const row = ownRow(rows, echoTask(size));
    const bare = rows.find(({ task, contender }) => task === echoTask(size) && contender === bareEcho);
    if (!row || !bare) return [];
    const extraMs = row.p50 - bare.p50;
    const target = `${echoTask(size)}: comes back at most ${keystrokeMsMax} ms later than from a ${bareEcho} (p50)`;
    return [{ target, measured: `${extraMs.toFixed(2)} ms`, met: extraMs < keystrokeMsMax }];
  });
}

/** Milliseconds a command may take while another sandbox uses all the CPU it can get. */
const besideMsMax = 1_000;

function judgeFairness(rows: readonly Row[]): Verdict[] {
  const row = ownRow(rows, besideExecuteTask);
  if (!row) return [];
  return [{ target: `${besideExecuteTask}: takes less than ${besideMsMax} ms (p99)`, measured: `${row.p99.toFixed(0)} ms`, met: row.p99 < besideMsMax }];
}

/** Milliseconds for which a snapshot may stop a sandbox, and that it may take, whatever was changed. */
const pauseMsMax = 20;
const snapshotMsMax = 100;

function judgeSnapshots(rows: readonly Row[]): Verdict[] {
  return [...snapshotSizes, largeSize].flatMap(({ name }) => {
    const [pause, whole] = [ownRow(rows, pauseTask(name)), ownRow(rows, snapshotTask(name))];
    if (!pause || !whole) return [];
    return [
      { target: `${pauseTask(name)}: less than ${pauseMsMax} ms (p50)`, measured: `${pause.p50.toFixed(1)} ms`, met: pause.p50 < pauseMsMax },
      {
        target: `${snapshotTask(name)}: answers in less than ${snapshotMsMax} ms (p50)`,
        measured: `${whole.p50.toFixed(0)} ms`,
        met: whole.p50 < snapshotMsMax,
      },
    ];
  });
}

/** How many times as long as in quiet a command may take beside a sandbox that floods everything. */
const hostileTimesMax = 2;

function judgeHostile(rows: readonly Row[]): Verdict[] {
  const row = ownRow(rows, hostileTask);
  const quiet = rows.find(({ task, contender }) => task === hostileTask && contender === quietContender);
  if (!row || !quiet) return [];
  const times = row.p99 / quiet.p99;
  return [
    {
      target: `${hostileTask}: takes at most ${hostileTimesMax} times as long as before (p99)`,
      measured: `${times.toFixed(2)} times`,
      met: times <= hostileTimesMax,
    },
  ];
}

/** Checks every target whose scenario was run. */
export function judge(rows: readonly Row[]): Verdict[] {
  const judged = [...targets, ...snapshotTargets].flatMap(({ task, peer, text, speedMin, show }) => {
    const row = ownRow(rows, task);
    const other = rows.find((candidate) => candidate.task === task && candidate.contender === peer);
    if (!row || !other) return [];
    const speed = speedAgainst(row, other);
    return [{ target: text, measured: show(speed), met: speed >= speedMin }];
  });
  return [...judged, ...judgeKeystrokes(rows), ...judgeFairness(rows), ...judgeHostile(rows), ...judgeSnapshots(rows)];
}
