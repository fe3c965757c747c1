/** CRIU on a machine that may lack rights that a usual one has. */
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import type { Machine } from "./machine.ts";

/** Puts a shim before CRIU, of which a usual machine needs nothing. To be called before the installation. @returns what to tell of it */
export async function bridgeCriu(machine: Machine): Promise<string> {
  // The account's group, in which sandboxes are, begins with the boot.
  await machine.shell("mkdir -p /var/lib/systemd/linger && touch /var/lib/systemd/linger/sandgate");
  const shim = await machine.give(join(appDir, "test/host/criu-shim.c"));
  await machine.shell(`
    tcc -shared -o /usr/lib/criu-shim.so ${shim}
    mv /usr/sbin/criu /usr/sbin/criu.real
    printf '#!/bin/sh\\nLD_PRELOAD=/usr/lib/criu-shim.so exec /usr/sbin/criu.real "$@"\\n' > /usr/sbin/criu
    chmod 755 /usr/sbin/criu`);
  return "CRIU runs with a shim in place of CAP_SYS_RESOURCE, which this machine may lack";
}
