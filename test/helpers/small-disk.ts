/** An installation with its sandboxes, records and snapshots on a small separate file system, which a test can fill. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../shared/config.ts";
import { instanceOf } from "../../systemd/base/instance.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { findAccount, findAccounts } from "../../systemd/setup/account.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { instanceDirectory } from "../../systemd/setup/runtime-directory.ts";
import { ensure } from "../../systemd/setup/step.ts";
import { endUnusedPause } from "../../systemd/supervisor/pause.ts";
import { Api } from "./api.ts";
import { type Stack, startStack } from "./stack.ts";

const MiB = 1024 ** 2;

export interface SmallDiskOptions {
  readonly name: string;
  /** What is free of it at first. */
  readonly freeMiB: number;
  /** Files that can be made; as many as is usual when absent. */
  readonly freeInodes?: number;
  readonly settings?: Readonly<Record<string, string>>;
}

const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
const asRoot = (...argv: string[]): Promise<string> => administrator.run("make a small file system for a test", argv);

export class SmallDisk {
  readonly stack: Stack;
  readonly api: Api;
  readonly #dir: string;

  private constructor(stack: Stack, dir: string) {
    this.stack = stack;
    this.api = new Api(stack);
    this.#dir = dir;
  }

  static async open({ name, freeMiB, freeInodes, settings = {} }: SmallDiskOptions): Promise<SmallDisk> {
    const dir = mkdtempSync(join(tmpdir(), `sandgate-disk-${name}-`));
    chmodSync(dir, 0o755);
    try {
      await makeFileSystem(dir, freeMiB, freeInodes);
      const storage = { SANDGATE_STORAGE_DIR: join(dir, "mounted/containers") };
      const config = loadConfig({ ...process.env, ...storage });
      await ensure(instanceDirectory(instanceOf(config, await findAccounts(config))), new Terminal(process.stderr));
      const stack = await startStack({ name, workersDir: join(dir, "mounted"), settings: { SANDGATE_DISK_FLOOR_BYTES: "0", ...settings, ...storage } });
      return new SmallDisk(stack, dir);
    } catch (error) {
      await removeFileSystem(dir);
      throw error;
    }
  }

  get free(): { bytes: number; files: number } {
    const { bavail, bsize, ffree } = statfsSync(this.#mounted);
    return { bytes: bavail * bsize, files: ffree };
  }

  /** Takes all remaining space, or all but this much. */
  async fill(leaveBytes = 0): Promise<void> {
    const name = join(this.#mounted, `ballast-${Date.now()}`);
    await asRoot("fallocate", "--length", String(Math.max(4096, this.free.bytes - leaveBytes)), name).catch(() => {});
    // What fallocate does not get for its last blocks is taken one by one.
    if (leaveBytes === 0) await asRoot("sh", "-c", `cat /dev/zero > ${name}.rest`).catch(() => {});
    await asRoot("sync", "--file-system", this.#mounted);
  }

  /** Gives it back. */
  async empty(): Promise<void> {
    await asRoot("sh", "-c", `rm -rf ${this.#mounted}/ballast-*`);
  }

  /** Takes all remaining inodes. */
  async fillInodes(): Promise<void> {
    const name = join(this.#mounted, `ballast-${Date.now()}`);
    await asRoot("sh", "-c", `mkdir ${name} && cd ${name} && seq 1 ${this.free.files} | xargs touch 2>/dev/null; true`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.empty();
    await this.stack[Symbol.asyncDispose]();
    await endUnusedPause(this.stack.instance);
    rmSync(this.stack.instance.runtimeDir, { recursive: true, force: true });
    await removeFileSystem(this.#dir);
  }

  get #mounted(): string {
    return join(this.#dir, "mounted");
  }
}

/** An empty file system; the images that its sandboxes are made of are read from the store that the tests share. */
async function makeFileSystem(dir: string, freeMiB: number, freeInodes: number | undefined): Promise<void> {
  const account = await findAccount(loadConfig());
  const image = join(dir, "image");
  const mounted = join(dir, "mounted");
  mkdirSync(mounted);
  await asRoot("truncate", "--size", String(Math.ceil(freeMiB * 1.1 + 16) * MiB), image);
  await asRoot("mkfs.ext4", "-q", "-F", "-m", "0", ...(freeInodes === undefined ? [] : ["-N", String(freeInodes)]), image);
  await asRoot("mount", "-o", "loop", image, mounted);
  await asRoot("chown", `${account.uid}:${account.gid}`, mounted);
}

async function removeFileSystem(dir: string): Promise<void> {
  // Lazily, because Podman's namespace, which has it as well, goes a moment later.
  await asRoot("sh", "-c", `! mountpoint -q ${dir}/mounted || umount --lazy ${dir}/mounted`);
  await asRoot("rm", "-rf", "--one-file-system", dir);
}
