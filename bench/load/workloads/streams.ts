import type { Workload } from "../workload.ts";

/** Bytes rather than calls. */
export default {
  about: "streams: 8 MiB of output, 4 MiB up, 4 MiB down",
  sandboxes: 4,
  setup: "head -c 4194304 /dev/urandom > /tmp/download.bin",
  steps: [
    { name: "output 8 MiB", weight: 2, stream: "head -c 8388608 /dev/zero | tr '\\0' 'x'" },
    { name: "upload 4 MiB", upload: { path: "/tmp/upload.bin", bytes: 4_194_304 } },
    { name: "download 4 MiB", download: { path: "/tmp/download.bin" } },
  ],
} satisfies Workload;
