/** The volume of a test's worker, made and mounted as the set-up does it. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { mountAt } from "../../shared/util/mounts.ts";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import type { Instance } from "../../systemd/base/instance.ts";
import { run } from "../../systemd/base/run.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { helperCommand, relay, serveWorker } from "../../systemd/helper/connect.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { prepareVolume } from "../../systemd/setup/volume.ts";
import { volumeSettings } from "../../systemd/supervisor/node-parts.ts";

import type { PartSpec } from "../../systemd/supervisor/part.ts";
import { unmount } from "../../systemd/volume/unmount.ts";
import { isVolume, type NoVolume, type Volume } from "../../systemd/volume/volume.ts";
import { containerStoreIn, optionsFor } from "../../worker/runtime/podman/container-store.ts";
import { until } from "./until.ts";

const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);

export class TestVolume implements AsyncDisposable {
  readonly found: Volume | NoVolume;
  readonly #instance: Instance;
  #socket: { readonly path: string; readonly server: Server } | undefined;

  private constructor(found: Volume | NoVolume, instance: Instance) {
    this.found = found;
    this.#instance = instance;
  }

  get #paths(): Instance["paths"] {
    return this.#instance.paths;
  }

  get #account(): Instance["account"] {
    return this.#instance.account;
  }

  /** Makes one for each worker, or none. @param dir where; only root can write to it and to the folders on the way */
  static async makeAll(instance: Instance, dir: string, workerIds: readonly string[]): Promise<TestVolume[]> {
    const made: TestVolume[] = [];
    try {
      for (const id of workerIds) made.push(await TestVolume.make(instance, join(dir, "volumes", id)));
      return made;
    } catch (error) {
      for (const volume of made) await volume[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** @param folder as for `makeAll`, its own */
  static async make(instance: Instance, folder: string): Promise<TestVolume> {
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    const paths = { ...instance.paths, data: folder, volume: join(folder, "volume"), volumeImage: join(folder, "volume.img") };
    const placed = { ...instance, paths };
    try {
      return new TestVolume(await prepareVolume(placed, administrator), placed);
    } catch (error) {
      await freeVolume(paths);
      throw error;
    }
  }

  /**
   * Has a helper that is a process of its own serve every connection to a socket, as systemd does it.
   *
   * @param pidOf tells the process id of the worker
   * @param faults the file that may name the point at which the helper dies or stands still
   */
  async listen(pidOf: () => number, faults = ""): Promise<void> {
    const { found } = this;
    if (!isVolume(found)) return;
    const path = join(dirname(this.#paths.volume), "helper.sock");
    const account = this.#account;
    const images = { dir: this.#paths.memory, floorBytes: 0, keyFile: this.#paths.memoryKey };
    const server = createServer((connection) => {
      const [env = "", alone = "", ...command] = helperCommand({ volume: found, images, worker: { pid: pidOf(), account } }, this.#paths);
      relay(connection, [env, alone, `SANDGATE_TEST_FAULT=${faults}`, ...command]);
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    chownSync(path, account.uid, account.gid);
    chmodSync(path, 0o600);
    this.#socket = { path, server };
  }

  /** What the worker is started with. */
  get settings(): Record<string, string> {
    return volumeSettings(this.found, this.#socket?.path);
  }

  get serve(): Pick<PartSpec, "serve"> {
    const { found } = this;
    const account = this.#account;
    return isVolume(found) && !this.#socket
      ? {
          serve: (connection, pid) =>
            serveWorker(
              connection,
              { volume: found, images: { dir: this.#paths.memory, floorBytes: 0, keyFile: this.#paths.memoryKey }, worker: { pid, account } },
              this.#paths,
            ),
        }
      : {};
  }

  /** Unmounts it and mounts it again, when nothing uses it. */
  async remount(): Promise<void> {
    await releaseVolume(this.#paths);
    const found = await prepareVolume(this.#instance, administrator);
    assert.deepEqual(found, this.found);
  }

  /** After everything that uses it has been stopped. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket?.server.close();
    await freeVolume(this.#paths);
  }
}

type Paths = Pick<Instance["paths"], "volume" | "volumeImage">;

/** Unmounts the volume of an installation that has been stopped, in whatever way, and waits until its loop device is free. */
export async function releaseVolume({ volume, volumeImage }: Paths): Promise<void> {
  await unmount(volume);
  rmSync(volume, { recursive: true, force: true });
  await until(`the loop device of ${volumeImage} is free`, () => !loopFiles().some((file) => dirname(file) === dirname(volumeImage)));
}

/** What has podman work on the containers of a worker. */
export const inContainerStore = ({ runtimeDir }: Pick<Instance, "runtimeDir">, workerId: string): string[] =>
  optionsFor(containerStoreIn(join(runtimeDir, "sandgate", workerId)));

/** Unmounts what a worker that has ended left mounted in Podman's namespace. */
export async function unmountInPodman(instance: Instance, workerId: string): Promise<void> {
  const script = `awk -v id="/$1/" 'index($5 "/", id) { print $5 }' /proc/self/mountinfo | tac | xargs --no-run-if-empty umount --lazy --quiet || true`;
  await run(inPodmanNamespace(instance, ["sh", "-c", script, "sh", workerId]), { env: accountEnvironment(instance), cwd: "/" });
}

/** Removes it as well. */
export async function freeVolume(paths: Paths): Promise<void> {
  await releaseVolume(paths);
  for (const file of [paths.volumeImage, `${paths.volumeImage}.partial`]) rmSync(file, { force: true });
}

/** Makes a mounted volume and its file smaller. */
export async function shrinkVolume(volume: string, bytes: number): Promise<void> {
  const device = mountAt(volume)?.source ?? assert.fail(`nothing is mounted at ${volume}`);
  await run(["btrfs", "filesystem", "resize", String(bytes), volume]);
  truncateSync(join(dirname(volume), "volume.img"), bytes);
  await run(["losetup", "--set-capacity", device]);
}

/** The files behind the loop devices of this machine. */
export function loopFiles(): string[] {
  return readdirSync("/sys/block").flatMap((name) => {
    try {
      return [readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trim()];
    } catch {
      return [];
    }
  });
}
