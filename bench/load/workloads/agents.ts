import type { Workload } from "../workload.ts";

/** What coding agents do: mostly short commands, some files, now and then a look around or a sandbox of their own. */
export default {
  about: "mixed agents: short commands, scripts, small files, output, status, now and then a new sandbox",
  sandboxes: 4,
  setup: "mkdir -p /work && head -c 65536 /dev/urandom > /work/result.bin",
  steps: [
    { name: "command", weight: 50, execute: "ls -la / | wc -l" },
    { name: "script", weight: 15, execute: "python3 -c 'print(sum(i * i for i in range(10000)))'" },
    { name: "write a file", weight: 12, upload: { path: "/work/main.py", bytes: 4_096 } },
    { name: "read a file", weight: 8, download: { path: "/work/result.bin" } },
    { name: "output", weight: 8, stream: "seq 2000" },
    { name: "status", weight: 4, read: "status" },
    { name: "list", weight: 2, read: "list" },
    { name: "new sandbox", weight: 1, create: { run: "true" } },
  ],
} satisfies Workload;
