/** What the product promises about its speed, and whether a run keeps it. */
import { ownRow, type Row, speedAgainst } from "./rows.ts";
import { createTask } from "./scenarios/create.ts";
import { executeTask } from "./scenarios/execute.ts";
import { listSizes, listTask } from "./scenarios/list.ts";
import { cloneTask, restoreTask, snapshotSizes, snapshotTask } from "./scenarios/snapshot.ts";

export interface Verdict {
  readonly target: string;
  readonly measured: string;
  readonly met: boolean;
}

interface Target {
  readonly task: string;
  readonly peer: string;
  readonly text: string;
  /** Least number of times as fast as the peer. */
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
  ...listSizes.map((size) => ({
    task: listTask(size),
    peer: "bare uWebSockets.js",
    text: `list (${size} sandboxes) answers at least 50 % of the calls/s of bare uWebSockets.js`,
    speedMin: 0.5,
    show: (speed: number) => `${Math.round(speed * 100)} %`,
  })),
];

const snapshotTargets = snapshotSizes.flatMap(({ name }): Target[] => {
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

/** Judges every target whose scenario was run. */
export function judge(rows: readonly Row[]): Verdict[] {
  return [...targets, ...snapshotTargets].flatMap(({ task, peer, text, speedMin, show }) => {
    const row = ownRow(rows, task);
    const other = rows.find((candidate) => candidate.task === task && candidate.contender === peer);
    if (!row || !other) return [];
    const speed = speedAgainst(row, other);
    return [{ target: text, measured: show(speed), met: speed >= speedMin }];
  });
}
