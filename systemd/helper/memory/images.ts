/**
 * Images of the processes of sandboxes: dumped while their sandbox runs on, restored into sandboxes that have been made for them.
 * They are in a folder that only root can open, since they contain what CRIU believes when it restores as root.
 */
import { randomInt } from "node:crypto";
import { existsSync, linkSync, mkdirSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { arch, release } from "node:os";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { run } from "../../base/run.ts";
import { searchPath } from "../../base/search-path.mjs";
import type { ServedWorker } from "../map-ids.ts";
import { Refusal } from "../refusal.ts";
import { Criu } from "./criu.ts";
import { groupFolderOf } from "./groups.ts";
import { readMemoryKey } from "./key.ts";
import { foreignMounts, namedMounts } from "./mounts.ts";
import { isStill, type SandboxProcess, sandboxProcess } from "./owner.ts";
import { openWorkersPipe } from "./pipe.ts";
import { type ImagePlace, memoryOf, refuseWithoutRoom } from "./room.ts";
import { connect, ownOf, settle } from "./settle.ts";
import { onStage, stagedMounts } from "./stage.ts";
import { imageFiles, pack, unpack } from "./travel.ts";
import { giveUsers } from "./users.ts";

const onlyRoot = 0o700;
/** Of an image, which nobody else reaches: CRIU opens files in it with the ids that it is restoring. */
const passable = 0o711;
/** Empty, but in the mount namespace of a run of CRIU. Copies must be able to pass it. */
const stageDir = "/run/sandgate-stage";
const checkTimeoutMs = 20_000;
const recordFile = "image.json";

/** What is needed to restore an image, beside what CRIU has written. */
interface ImageRecord {
  /** Paths of mounts that a copy gets from its own container. */
  readonly mounts: readonly string[];
  /** What the image fits. */
  readonly made: string;
  /** By which it is known on all machines; absent in one that is not whole yet, or of an earlier version. */
  readonly identity?: number;
}

/** As large as the numbers of requests, and drawn by lot where the worker has no say: nobody can make another image with the same one. */
const newIdentity = (): number => randomInt(1, 2 ** 48 - 1);

interface Dump {
  readonly criu: Criu;
  readonly source: SandboxProcess;
}

export class MemoryImages {
  readonly #place: ImagePlace;
  readonly #worker: ServedWorker;
  /** Whose processes stand still, by the numbers of their images. */
  readonly #dumps = new Map<number, Dump>();
  #serial = 0;

  constructor(place: ImagePlace, worker: ServedWorker) {
    this.#place = place;
    this.#worker = worker;
  }

  get #dir(): string {
    return this.#place.dir;
  }

  /** @throws {Refusal | CommandError} where processes cannot be dumped */
  async check(): Promise<void> {
    await run(["criu", "check"], { env: { PATH: searchPath, LC_ALL: "C" }, cwd: "/", timeoutMs: checkTimeoutMs });
  }

  /** @throws {Refusal} everything goes on then, and nothing is left of the image */
  async dump(image: number, pid: number): Promise<void> {
    const source = sandboxProcess(this.#worker.account, pid);
    const mounts = foreignMounts(pid);
    const dir = this.#folderOf(image);
    this.#refuseExisting(image);
    mkdirSync(this.#dir, { recursive: true, mode: onlyRoot });
    await refuseWithoutRoom(this.#place, memoryOf(groupFolderOf(pid)));
    await mkdir(dir);
    await chmod(dir, passable);
    try {
      // Before anything stands still: each of these takes a program or two.
      await writeRecord(dir, { mounts, made: await madeWith() });
      const criu = await Criu.start(dir, "post-dump", ["dump", "--tree", String(pid), "--leave-running", ...namedMounts(mounts)]);
      await this.#standStill(criu, source);
      this.#dumps.set(image, { criu, source });
    } catch (error) {
      await this.remove(image);
      throw error;
    }
  }

  async #standStill(criu: Criu, source: SandboxProcess): Promise<void> {
    try {
      await criu.reached();
      // They may have taken more memory before they stood still.
      await refuseWithoutRoom(this.#place, 0);
      // Its number could be another's by now: then CRIU has dumped that one.
      if (!isStill(source)) throw new Refusal("refused", "the sandbox ended while it was dumped");
    } catch (error) {
      await criu.giveUp();
      throw error;
    }
  }

  /** @returns the size of the image in bytes @throws {Refusal} */
  async resume(image: number): Promise<number> {
    const dump = this.#dumps.get(image);
    if (!dump) throw new Refusal("refused", `nothing is being dumped into image ${image}`);
    this.#dumps.delete(image);
    try {
      await dump.criu.goOn();
    } catch (error) {
      await this.remove(image);
      throw error;
    }
    const dir = this.#folderOf(image);
    await writeRecord(dir, { ...(await readRecord(dir, image)), identity: newIdentity() });
    return sizeOf(dir);
  }

  /** @throws {Refusal} where the image, or any, cannot leave this machine */
  async identify(image: number): Promise<number> {
    await readMemoryKey(this.#place.keyFile);
    return (await this.#whole(image)).identity;
  }

  /** Writes an image, sealed, into a pipe of the worker's. @throws {Refusal} what is in the pipe then has no end */
  async export(image: number, pipe: number): Promise<void> {
    const key = await readMemoryKey(this.#place.keyFile);
    const { identity, mounts, made } = await this.#whole(image);
    const to = openWorkersPipe(this.#worker, pipe, "write");
    try {
      await pack(this.#folderOf(image), { mounts, made }, { key, identity }, to);
    } finally {
      to.destroy();
    }
  }

  /** Makes a new image of what a helper has sealed. @returns its size in bytes @throws {Refusal} nothing is left of it then */
  async import(image: number, identity: number, pipe: number): Promise<number> {
    const key = await readMemoryKey(this.#place.keyFile);
    this.#refuseExisting(image);
    const here = await madeWith();
    const from = openWorkersPipe(this.#worker, pipe, "read");
    mkdirSync(this.#dir, { recursive: true, mode: onlyRoot });
    await this.#sweep();
    const work = join(this.#dir, `import-${process.pid}-${this.#serial++}`);
    await mkdir(work);
    try {
      const check = ({ made }: Pick<ImageRecord, "made">): void => refuseOther(made, here);
      const { mounts, made } = await unpack(from, work, { key, identity, place: this.#place, check });
      await writeRecord(work, { mounts, made, identity });
      await chmod(work, passable);
      await rename(work, this.#folderOf(image));
      return await sizeOf(this.#folderOf(image));
    } finally {
      from.destroy();
      await rm(work, { recursive: true, force: true });
    }
  }

  /** Before anything is made. One that comes later is not written over either: no folder is made or renamed where one with files is. */
  #refuseExisting(image: number): void {
    if (existsSync(this.#folderOf(image))) throw new Refusal("refused", `there is an image ${image} already`);
  }

  async #whole(image: number): Promise<Required<ImageRecord>> {
    const { identity, ...record } = await readRecord(this.#folderOf(image), image);
    if (identity === undefined) throw new Refusal("refused", `image ${image} is not whole`);
    return { ...record, identity };
  }

  /** @returns the first process of the copy @throws {Refusal | CommandError} nothing of it is left then */
  async restore(image: number, container: number): Promise<number> {
    const users = sandboxProcess(this.#worker.account, container);
    const dir = this.#folderOf(image);
    const { mounts, made } = await readRecord(dir, image);
    refuseOther(made, await madeWith());
    await this.#sweep();
    const work = join(this.#dir, `restore-${process.pid}-${this.#serial++}`);
    await mkdir(work);
    await chmod(work, passable);
    try {
      for (const name of imageFiles(dir)) linkSync(join(dir, name), join(work, name));
      return await this.#restore(work, users, mounts);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  async #restore(dir: string, container: SandboxProcess, paths: readonly string[]): Promise<number> {
    const stage = { pid: container.pid, dir: stageDir, group: groupFolderOf(container.pid), paths };
    await mkdir(stage.dir, { recursive: true });
    await chmod(stage.dir, passable);
    await giveUsers(dir, container);
    // While CRIU works.
    const own = ownOf(container.pid);
    own.catch(() => {});
    const criu = await Criu.start(dir, "post-restore", ["restore", "--restore-detached", ...stagedMounts(stage)], onStage(stage));
    try {
      const copy = await criu.reached();
      await settle({ copy, container: container.pid }, await own);
      await criu.goOn();
      return copy;
    } catch (error) {
      await criu.giveUp();
      throw error;
    }
  }

  /** @throws {Refusal | CommandError} */
  async connect(container: number, copy: number): Promise<void> {
    const [its, copied] = [container, copy].map((pid) => sandboxProcess(this.#worker.account, pid)) as [SandboxProcess, SandboxProcess];
    const idsOf = ({ users, groups }: SandboxProcess): string => JSON.stringify([users, groups]);
    if (copy === container || idsOf(its) !== idsOf(copied)) throw new Refusal("refused", `process ${copy} is no copy in that container`);
    await connect({ copy, container }, () => isStill(its) && isStill(copied));
  }

  /** What helpers that were killed had restored from, or had not imported completely. */
  async #sweep(): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const helper = /^(?:restore|import)-(\d+)-/.exec(name)?.[1];
      if (helper && !existsSync(`/proc/${helper}`)) await rm(join(this.#dir, name), { recursive: true, force: true });
    }
  }

  async remove(image: number): Promise<void> {
    await rm(this.#folderOf(image), { recursive: true, force: true });
  }

  /** Lets everything go on. Resolves when CRIU has ended everywhere: it must not be killed. */
  async close(): Promise<void> {
    const dumps = [...this.#dumps];
    this.#dumps.clear();
    for (const [image, { criu }] of dumps) {
      await criu.giveUp();
      await this.remove(image);
    }
  }

  #folderOf(image: number): string {
    return join(this.#dir, String(image));
  }
}

async function readRecord(dir: string, image: number): Promise<ImageRecord> {
  const text = await readFile(join(dir, recordFile), "utf8").catch(() => undefined);
  if (text === undefined) throw new Refusal("refused", `there is no image ${image}`);
  return JSON.parse(text) as ImageRecord;
}

async function writeRecord(dir: string, record: ImageRecord): Promise<void> {
  const partial = join(dir, `${recordFile}.partial`);
  await writeFile(partial, JSON.stringify(record));
  await rename(partial, join(dir, recordFile));
}

/** @throws {Refusal} */
function refuseOther(made: string, here: string): void {
  if (made !== here) throw new Refusal("refused", `the image was made by ${made}, and this is ${here}`);
}

/** What an image fits: the processor, the kernel and CRIU. */
async function madeWith(): Promise<string> {
  const version = await run(["criu", "--version"], { env: { PATH: searchPath, LC_ALL: "C" }, cwd: "/", timeoutMs: checkTimeoutMs });
  const criu = /Version: (\S+)/.exec(version)?.[1] ?? "?";
  return `CRIU ${criu} on Linux ${release()} (${arch()}, ${await processor()})`;
}

async function processor(): Promise<string> {
  const text = await readFile("/proc/cpuinfo", "utf8");
  return /^model name\s*:\s*(.+)$/m.exec(text)?.[1] ?? attempt(() => /^CPU part\s*:\s*(.+)$/m.exec(text)?.[1]) ?? "?";
}

async function sizeOf(dir: string): Promise<number> {
  const sizes = await Promise.all((await readdir(dir)).map(async (name) => (await stat(join(dir, name))).blocks * 512));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}
