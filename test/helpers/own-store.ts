/** A test's own image store with a small default image, for tests that add and remove images. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pack } from "tar-stream";
import { accountEnvironment, inPodmanNamespace } from "../../systemd/base/as-account.ts";
import type { Instance } from "../../systemd/base/instance.ts";
import { run } from "../../systemd/base/run.ts";
import { instanceDirectory } from "../../systemd/setup/runtime-directory.ts";
import { endUnusedPause } from "../../systemd/supervisor/pause.ts";
import { removeAbandoned, temporaryFolder } from "./folder.ts";
import { preparedInstance, testInstance } from "./prepare.ts";
import { until } from "./until.ts";

export class OwnStore {
  readonly #dir: string;
  readonly #instance: Instance;
  /** Of the default image. */
  readonly defaultId: string;

  private constructor(dir: string, instance: Instance, defaultId: string) {
    this.#dir = dir;
    this.#instance = instance;
    this.defaultId = defaultId;
  }

  static async make(): Promise<OwnStore> {
    const dir = mkdtempSync(join(tmpdir(), "sandgate-store-"));
    chmodSync(dir, 0o711); // the worker's user makes its storage in it
    const instance = await testInstance(join(dir, "data"), { SANDGATE_STORAGE_DIR: join(dir, "store") });
    if (await instanceDirectory(instance).lacks()) await instanceDirectory(instance).provide({ say: () => undefined });
    return new OwnStore(dir, instance, await importRoot(instance, dir, [instance.config.defaultImage]));
  }

  /** What makes an installation use it. */
  get settings(): Record<string, string> {
    return { SANDGATE_STORAGE_DIR: this.#instance.paths.storage, SANDGATE_DEFAULT_IMAGE_ID: this.defaultId };
  }

  /** Adds a unique image under a name and returns its id. */
  add(name: string): Promise<string> {
    return importRoot(this.#instance, this.#dir, [name]);
  }

  /** After everything that uses it has been stopped. */
  async [Symbol.asyncDispose](): Promise<void> {
    await podmanOf(this.#instance, ["rm", "--all", "--force", "--time", "0"]);
    await until("podman has left its storage", async () => {
      await run(inPodmanNamespace(this.#instance, ["rm", "-rf", join(this.#dir, "store/storage")]), { env: accountEnvironment(this.#instance), cwd: "/" });
      return true;
    });
    await endUnusedPause(this.#instance);
    await removeAbandoned(this.#instance.runtimeDir);
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Puts an image without a name into the storage that the tests share; returns its id. */
export async function importedImage(): Promise<string> {
  using folder = temporaryFolder("import", 0o711);
  return await importRoot(await preparedInstance(), folder.path, []);
}

/** Puts an image of a few folders into the store of an installation, with these names; returns its id. @param dir where its archive is written, which the account can read */
export async function importRoot(instance: Instance, dir: string, name: readonly string[]): Promise<string> {
  const archive = join(dir, "root.tar");
  writeFileSync(archive, await rootArchive(), { mode: 0o644 });
  const id = await podmanOf(instance, ["import", "--quiet", "--change", 'CMD ["/none"]', archive, ...name]);
  return id.trim().replace(/^sha256:/, "");
}

function podmanOf(instance: Instance, args: readonly string[]): Promise<string> {
  return run(inPodmanNamespace(instance, ["podman", ...args]), { env: accountEnvironment(instance), cwd: "/" });
}

/** Enough for a container to start in; unlike that of any other store. */
async function rootArchive(): Promise<Buffer> {
  const tar = pack();
  for (const name of ["etc", "proc", "sys", "dev", "run", "tmp", "root"]) tar.entry({ name, type: "directory", mode: 0o755 });
  tar.entry({ name: "etc/default" }, randomBytes(16));
  tar.finalize();
  return buffer(tar);
}
