/** What a machine holds because of sandboxes, to be compared before the first one and after the last. */
import { isDeepStrictEqual } from "node:util";
import { until } from "../helpers/until.ts";
import { asWorker } from "./installed.ts";
import { type Machine, volumeDir } from "./machine.ts";

const settledMs = 90_000;

/** Scripts that print a line for each thing. Names without ids, which differ each time, except of what is to be none. */
const scripts = {
  containers: `for store in /run/user/*/sg-*/sandgate/wk_*/containers; do ${asWorker} podman --root "$store" --storage-driver vfs ps --all --format '{{.Names}}'; done`,
  // Podman's service comes when it is needed, and goes by itself. Whoever looks is none of them.
  processes: `first=$(awk -F: '$1 == "sandgate" { print $2 }' /etc/subuid | head -n 1)
    ps -eo uid=,comm=,args= | awk -v own="$(id -u sandgate)" -v first="$first" '($1 == own || (first != "" && $1 >= first)) && !/podman system service|\\(sd-pam\\)/ { print ($1 == own ? "sandgate" : "a sandbox"), $2 }'`,
  mounts: `cat "/proc/$(systemctl show --property=MainPID --value sandgate-worker.service)/mountinfo" /proc/1/mountinfo | awk '$5 ~ "^(/var/lib/sandgate|${volumeDir})" { print $5 }'`,
  groups: "find /sys/fs/cgroup -type d \\( -name 'libpod-*' -o -name '*sb_*' \\)",
  files: `find ${volumeDir}/*/roots ${volumeDir}/*/layers /var/lib/sandgate/worker/roots /var/lib/sandgate/worker/layers -mindepth 1 -maxdepth 1 2> /dev/null || true`,
} as const;

type Kind = keyof typeof scripts;
const kinds = Object.keys(scripts) as Kind[];
export type Holdings = Readonly<Record<Kind, readonly string[]>>;

export async function holdingsOf(machine: Machine): Promise<Holdings> {
  const held = kinds.map(async (kind) => [kind, (await machine.shell(scripts[kind])).split("\n").filter(Boolean).sort()] as const);
  return Object.fromEntries(await Promise.all(held)) as unknown as Holdings;
}

/** Resolves when of each kind there is more on some machine than before: what would be left can be seen. */
export async function untilHeld(machines: readonly Machine[], before: readonly Holdings[]): Promise<void> {
  await until("the machines hold what clients have made", async () => {
    const now = await Promise.all(machines.map(holdingsOf));
    return kinds.every((kind) => now.some((held, index) => held[kind].length > (before[index]?.[kind].length ?? 0)));
  });
}

/** Resolves when a machine holds what it did before, and nothing beside it. @throws {Error} that names what it holds */
export async function untilHolds(machine: Machine, before: Holdings): Promise<void> {
  let now = before;
  await until(
    `${machine.name} holds nothing of what clients have made`,
    async () => {
      now = await holdingsOf(machine);
      return isDeepStrictEqual(now, before);
    },
    settledMs,
  ).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify({ before, now })}`);
  });
}
