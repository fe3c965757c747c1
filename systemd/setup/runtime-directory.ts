/** /run/user/UID, which the login manager creates if there is one, and the installation's own directory in it. */
import { existsSync, lstatSync } from "node:fs";
import { stat } from "node:fs/promises";
import { connect } from "node:net";
import { basename, dirname, join } from "node:path";
import { isInMemory } from "../../shared/util/mounts.ts";
import { until } from "../../shared/waiting.ts";
import { asAccount } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import { type Account, type Instance, runtimeBase, sessionBusOf } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import { trustedPath } from "../base/trusted-path.mjs";
import type { Administrator } from "./administrator.ts";
import { hasSystemd } from "./programs.ts";
import type { Step } from "./step.ts";

const lingerTimeoutMs = 20_000;

/** The account's runtime directory, which lasts until the machine shuts down. */
export function runtimeDirectory(account: Account, administrator: Administrator): Step {
  const directory = runtimeBase(account);
  return {
    title: "Making the runtime directory",
    lacks: async () => ((await isReady(account)) ? undefined : directory),
    provide: async () => {
      if (hasSystemd()) return linger(account, administrator);
      trustedPath(dirname(directory));
      const isNew = !existsSync(directory);
      // Missing parent folders are created with mode 0755.
      await administrator.run(`create ${directory}`, ["install", "-d", "-m", "0700", "-o", account.name, directory]);
      if (isNew && !isInMemory(directory)) await mountInMemory(account, administrator);
    },
  };
}

/**
 * The directory that this installation uses as XDG_RUNTIME_DIR. Podman 4 tells crun nothing else of the session bus, so it is
 * there as well. Without it, crun would ask the system's service manager for groups, which refuses.
 */
export function instanceDirectory({ account, runtimeDir }: Instance): Step {
  const bus = join(runtimeDir, basename(sessionBusOf(account)));
  const lacksBus = (): boolean => hasSystemd() && lstatSync(bus, { throwIfNoEntry: false }) === undefined;
  return {
    title: "Making the runtime directory of this installation",
    lacks: async () => (existsSync(runtimeDir) && !lacksBus() ? undefined : runtimeDir),
    provide: async () => {
      if (!existsSync(runtimeDir)) await run(asAccount(account, ["mkdir", "-m", "0700", runtimeDir]));
      if (lacksBus()) await run(asAccount(account, ["ln", "-s", sessionBusOf(account), bus]));
    },
  };
}

/** As the login manager does. Where nobody may mount, it stays on the disk, which makes containers slower to start. */
async function mountInMemory(account: Account, administrator: Administrator): Promise<void> {
  const [directory, options] = [runtimeBase(account), `mode=0700,uid=${account.uid},gid=${account.gid},size=10%,nosuid,nodev`];
  await administrator.run(`keep ${directory} in memory`, ["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory]).catch(() => {});
}

async function isReady(account: Account): Promise<boolean> {
  const found = await stat(runtimeBase(account)).catch(() => undefined);
  // Podman lets everybody pass it for a container with user ids of its own. What is in it keeps its rights.
  const usable = found?.isDirectory() === true && found.uid === account.uid && (found.mode & 0o066) === 0;
  return usable && (!hasSystemd() || (isLingering(account) && (await answers(sessionBusOf(account)))));
}

/** Whether a process listens on a socket. The socket's file remains when its process is killed. */
function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Without lingering, the directory is removed with the account's last session, while containers still use it. */
function isLingering(account: Account): boolean {
  return existsSync(join("/var/lib/systemd/linger", account.name));
}

async function linger(account: Account, administrator: Administrator): Promise<void> {
  if (!isLingering(account)) await administrator.run(`keep ${runtimeBase(account)} (lingering)`, ["loginctl", "enable-linger", account.name]);
  // One that was killed does not start again by itself, nor does one whose end the login manager has not noticed.
  await administrator.run(`start the service manager of ${account.name}`, ["systemctl", "start", `user@${account.uid}.service`]);
  const isThere = async (): Promise<boolean> => {
    if (await isReady(account)) return true;
    await startSessionBus(account);
    return false;
  };
  if (await until(isThere, { timeoutMs: lingerTimeoutMs, pollMs: 200 })) return;
  throw new StartFailure(`systemd has not made ${sessionBusOf(account)}; see: systemctl status user@${account.uid}`);
}

/** A session that started before the bus package was installed does not know the bus yet. */
async function startSessionBus(account: Account): Promise<void> {
  const env = { PATH: searchPath, XDG_RUNTIME_DIR: runtimeBase(account) };
  const systemctl = (...args: string[]) => succeeds(asAccount(account, ["systemctl", "--user", ...args]), { env, cwd: "/" });
  if (await systemctl("daemon-reload")) await systemctl("start", "dbus.socket");
}
