/** Small file systems, which a test can fill, and an installation with its sandboxes, records and snapshots on one. */
import { chmodSync, mkdirSync, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../shared/config.ts";
import { type Account, instanceOf } from "../../systemd/base/instance.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { findAccount, findAccounts } from "../../systemd/setup/account.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { instanceDirectory } from "../../systemd/setup/runtime-directory.ts";
import { ensure } from "../../systemd/setup/step.ts";
import { endUnusedPause } from "../../systemd/supervisor/pause.ts";
import { Api } from "./api.ts";
import { removeAbandoned } from "./folder.ts";
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

/** A small file system of its own, which a test can fill. */
export class SmallFileSystem {
  /** Where it is mounted. */
  readonly mounted: string;
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
    this.mounted = join(dir, "mounted");
  }

  /** An empty one. @param owner who may write to it */
  static async make({ name, freeMiB, freeInodes }: SmallDiskOptions, owner: Pick<Account, "uid" | "gid">): Promise<SmallFileSystem> {
    const made = new SmallFileSystem(mkdtempSync(join(tmpdir(), `sandgate-disk-${name}-`)));
    chmodSync(made.#dir, 0o755);
    const image = join(made.#dir, "image");
    mkdirSync(made.mounted);
    try {
      await asRoot("truncate", "--size", String(Math.ceil(freeMiB * 1.1 + 16) * MiB), image);
      await asRoot("mkfs.ext4", "-q", "-F", "-m", "0", ...(freeInodes === undefined ? [] : ["-N", String(freeInodes)]), image);
      await asRoot("mount", "-o", "loop", image, made.mounted);
      await asRoot("chown", `${owner.uid}:${owner.gid}`, made.mounted);
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  get free(): { bytes: number; files: number } {
    const { bavail, bsize, ffree } = statfsSync(this.mounted);
    return { bytes: bavail * bsize, files: ffree };
  }

  /** Takes all remaining space, or all but this much. */
  async fill(leaveBytes = 0): Promise<void> {
    const name = join(this.mounted, `ballast-${Date.now()}`);
    await asRoot("fallocate", "--length", String(Math.max(4096, this.free.bytes - leaveBytes)), name).catch(() => {});
    // What fallocate does not get for its last blocks is taken one by one.
    if (leaveBytes === 0) await asRoot("sh", "-c", `cat /dev/zero > ${name}.rest`).catch(() => {});
    await asRoot("sync", "--file-system", this.mounted);
  }

  /** Gives it back. */
  async empty(): Promise<void> {
    await asRoot("sh", "-c", `rm -rf ${this.mounted}/ballast-*`);
  }

  /** Takes all remaining inodes. */
  async fillInodes(): Promise<void> {
    const name = join(this.mounted, `ballast-${Date.now()}`);
    await asRoot("sh", "-c", `mkdir ${name} && cd ${name} && seq 1 ${this.free.files} | xargs touch 2>/dev/null; true`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Lazily, because Podman's namespace, which has it as well, goes a moment later.
    await asRoot("sh", "-c", `! mountpoint -q ${this.mounted} || umount --lazy ${this.mounted}`);
    await asRoot("rm", "-rf", "--one-file-system", this.#dir);
  }
}

/** An installation with its sandboxes, records and snapshots on one; the images that its sandboxes are made of are read from the store that the tests share. */
export class SmallDisk {
  readonly stack: Stack;
  readonly api: Api;
  readonly files: SmallFileSystem;

  private constructor(stack: Stack, files: SmallFileSystem) {
    this.stack = stack;
    this.api = new Api(stack);
    this.files = files;
  }

  static async open(options: SmallDiskOptions): Promise<SmallDisk> {
    const files = await SmallFileSystem.make(options, await findAccount(loadConfig()));
    try {
      const storage = { SANDGATE_STORAGE_DIR: join(files.mounted, "containers") };
      const config = loadConfig({ ...process.env, ...storage });
      await ensure(instanceDirectory(instanceOf(config, await findAccounts(config))), new Terminal(process.stderr));
      const settings = { SANDGATE_DISK_FLOOR_BYTES: "0", ...options.settings, ...storage };
      return new SmallDisk(await startStack({ name: options.name, workersDir: files.mounted, settings }), files);
    } catch (error) {
      await files[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.files.empty();
    await this.stack[Symbol.asyncDispose]();
    await endUnusedPause(this.stack.instance);
    await removeAbandoned(this.stack.instance.runtimeDir);
    await this.files[Symbol.asyncDispose]();
  }
}
