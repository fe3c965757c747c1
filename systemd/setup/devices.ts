/** The two device files that rootless containers open: /dev/net/tun for their network, /dev/fuse for fuse-overlayfs. */
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { StartFailure } from "../base/failure.ts";
import type { Administrator } from "./administrator.ts";
import type { Step } from "./step.ts";

/** Device numbers are fixed by the kernel (admin-guide/devices.txt). */
const devices = [
  { path: "/dev/net/tun", numbers: ["10", "200"] },
  { path: "/dev/fuse", numbers: ["10", "229"] },
];

/** Makes both accessible to all users, like udev does: the kernel checks permissions on use. */
export function deviceFiles(administrator: Administrator): Step {
  return {
    title: "Opening device files for containers",
    lacks: async () => (await closedDevices()).map(({ path }) => path).join(", ") || undefined,
    provide: async () => {
      for (const device of await closedDevices()) await open(device, administrator);
    },
  };
}

async function open({ path, numbers }: (typeof devices)[number], administrator: Administrator): Promise<void> {
  const why = `open ${path} to containers`;
  try {
    if (await exists(path)) await administrator.run(why, ["chmod", "0666", path]);
    else await administrator.run(why, ["sh", "-c", `mkdir -p ${dirname(path)} && mknod -m 0666 ${path} c ${numbers.join(" ")}`]);
  } catch (cause) {
    throw new StartFailure(`${path} is needed by containers and cannot be opened to them: ${String(cause)}`);
  }
}

async function closedDevices(): Promise<typeof devices> {
  const closed = [];
  for (const device of devices) {
    const found = await stat(device.path).catch(() => undefined);
    if (!found || (found.mode & 0o006) !== 0o006) closed.push(device);
  }
  return closed;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
