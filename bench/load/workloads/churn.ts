import type { Workload } from "../workload.ts";

/** Sandboxes that live for one command. */
export default {
  about: "churn: every arrival creates a sandbox, runs one command in it and deletes it",
  steps: [{ name: "sandbox", timeoutS: 120, create: { run: "true" } }],
} satisfies Workload;
