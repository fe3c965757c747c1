import type { Workload } from "../../../bench/load/workload.ts";

/** Enough for several restarts. */
export const calls = 100_000;

export default {
  about: "calls of every kind, some of which are under way for a while",
  sandboxes: 2,
  phases: [{ name: "restarts", count: calls, everyMs: 1 }],
  steps: [
    { name: "list", weight: 96.3, read: "list" },
    { name: "execute", weight: 2.5, execute: "true" },
    { name: "stream", weight: 1, stream: "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done" },
    { name: "create and delete", weight: 0.2, create: { run: "true" } },
  ],
} satisfies Workload;
