import type { Workload } from "../workload.ts";

/** People and programs at terminals. */
export default {
  about: "sessions: terminals with 20 keystrokes each, and commands in a terminal that end at once",
  sandboxes: 4,
  steps: [
    { name: "terminal", weight: 2, session: { command: "stty raw -echo; echo ready; exec cat", keys: 20 } },
    { name: "command in a terminal", session: { command: "echo done" } },
  ],
} satisfies Workload;
