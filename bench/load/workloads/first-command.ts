import type { Workload } from "../workload.ts";

/** The method of public comparisons of sandbox services: from the call that creates a sandbox to the answer of its first command. */
export default {
  about: "create to first command: 100 in sequence, 100 staggered by 200 ms, 100 at once",
  phases: [
    { name: "in sequence", count: 100 },
    { name: "staggered by 200 ms", count: 100, everyMs: 200 },
    { name: "at once", count: 100, everyMs: 0 },
  ],
  steps: [{ name: "first command", timeoutS: 120, create: { run: "echo benchmark" } }],
} satisfies Workload;
