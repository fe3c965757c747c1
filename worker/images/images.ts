/**
 * The images of a worker: resolves the image that a caller names, pulls it when missing, keeps it while it is needed, and
 * removes images when there are too many. All other code refers to images by id.
 */

import type { ImageEntry } from "../../shared/bus/contract/operators.ts";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { step } from "../../shared/tracing/spans.ts";
import { defaultImageWord, type ImageReference, imageError, keyOfName, localRegistry, nameOf, wantedImage } from "../../shared/util/image.ts";
import type { Logger } from "../../shared/util/log.ts";
import { KeyedMutex, SingleFlight } from "../../shared/util/mutex.ts";
import type { ImageLayers, PodmanImages, StoredImage } from "../runtime/podman/images.ts";
import { ImageGone } from "../runtime/podman/podman.ts";
import { type ImagePull, tooLarge } from "../runtime/podman/pull.ts";
import { isPulled, surplus } from "./budget.ts";
import { Pins } from "./pins.ts";
import { refuseUnusable } from "./usable.ts";
import { ImageUses } from "./uses.ts";

interface Parts {
  readonly config: Config;
  readonly store: PodmanImages;
  readonly puller: ImagePull;
  readonly workerId: string;
  readonly log: Logger;
  /** The images that this worker's sandboxes and snapshots need in order to be mounted again. */
  readonly needed: () => ReadonlySet<string>;
}

export class Images {
  readonly #parts: Parts;
  readonly #uses: ImageUses;
  readonly #pins = new Pins();
  readonly #pulls = new SingleFlight<string>();
  readonly #turns = new KeyedMutex();
  #held = new Set<string>();
  #keys: readonly string[] = [];
  #letGo = async (): Promise<void> => {};

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#uses = new ImageUses(parts.config.storageDir);
  }

  /** Keys of the names of the images that were there when last looked (`keyOfName`). */
  get keys(): readonly string[] {
    return this.#keys;
  }

  /** @param letGo gives up images that are held only so that what comes next is faster */
  onShort(letGo: () => Promise<void>): void {
    this.#letGo = letGo;
  }

  /** Takes over what an earlier process of this worker left. */
  async start(): Promise<void> {
    const { store, puller, workerId, needed, config, log } = this.#parts;
    await puller.removeAbandoned();
    this.#held = new Set(await store.held(workerId));
    for (const id of [...needed(), ...(config.defaultImageId ? [config.defaultImageId] : [])]) {
      await this.hold(id).catch((err) => log.debug({ err, image: id }, "an image in use is not on this worker"));
    }
    await this.#removeFormerDefaults().catch((err) => log.warn({ err }, "default images of earlier versions could not be removed"));
  }

  /**
   * Runs a task with the id of the image that a caller names. The image is present, and stays so while the task runs.
   *
   * @throws {SandgateError} `unprocessable`, with the reason, when the image is not available; `unavailable` without the default
   *   image; `insufficient_storage`
   */
  async use<T>(image: string, task: (id: string) => Promise<T>): Promise<T> {
    const wanted = wantedImage(image, this.#parts.config);
    if (wanted === defaultImageWord) return this.#useDefault(task);
    const unpin = this.#pins.add(nameOf(wanted));
    try {
      return await this.#usePulled(wanted, task).catch((error: unknown) => {
        // Another worker with the same storage may just have removed it.
        if (error instanceof ImageGone) return this.#usePulled(wanted, task);
        throw error;
      });
    } finally {
      unpin();
    }
  }

  /** The layers of a present image, which is kept for this worker from now on. @throws {ImageGone} */
  async kept(id: string): Promise<ImageLayers> {
    const unpin = this.#pins.add(id);
    try {
      await this.hold(id);
      return await this.#parts.store.layers(id);
    } finally {
      unpin();
    }
  }

  /** Keeps an image for as long as this worker's sandboxes or snapshots need it, even if others want the room. @throws {ImageGone} */
  async hold(id: string): Promise<void> {
    const { config, store, workerId } = this.#parts;
    // An image with a local name is never removed for room.
    const isKept = id === config.defaultImageId && config.defaultImage.startsWith(`${localRegistry}/`);
    if (isKept) return;
    await this.#turns.run(id, async () => {
      if (this.#held.has(id)) return;
      await store.hold(workerId, id);
      this.#held.add(id);
    });
  }

  /** The images in the storage, for operators. */
  async list(): Promise<ImageEntry[]> {
    await this.#release();
    const { config } = this.#parts;
    const [images, uses] = await Promise.all([this.#stored(), this.#uses.all()]);
    return images.map((image) => ({
      id: image.id,
      names: [...image.names],
      size_bytes: image.sizeBytes,
      ...(uses.has(image.id) ? { used_at_ms: Math.floor(uses.get(image.id) ?? 0) } : {}),
      in_use: this.#isUsed(image),
      default: image.id === config.defaultImageId,
    }));
  }

  /** Removes an unused image. @throws {SandgateError} `not_found`, `conflict` */
  async remove(id: string): Promise<void> {
    await this.#turns.run("remove", async () => {
      await this.#letGo();
      await this.#release();
      const image = (await this.#stored()).find((one) => one.id === id);
      if (!image) throw errors.notFound("image", id);
      if (id === this.#parts.config.defaultImageId) throw new SandgateError("conflict", "this is the default image");
      if (this.#isUsed(image) || !(await this.#removeUnused(image))) throw new SandgateError("conflict", "the image is in use");
    });
  }

  /** All images in the storage. */
  async #stored(): Promise<StoredImage[]> {
    const images = await this.#parts.store.list();
    this.#keys = images.filter(({ id }) => id !== this.#parts.config.defaultImageId).flatMap(keysOf);
    return images;
  }

  /** Removes earlier default images, whose name a later one has taken. */
  async #removeFormerDefaults(): Promise<void> {
    const { config, log } = this.#parts;
    const images = await this.#stored();
    if (!config.defaultImageId) return;
    const isFormer = ({ names, formerNames }: StoredImage): boolean => names.length === 0 && formerNames.includes(config.defaultImage);
    for (const image of images.filter((one) => isFormer(one) && !this.#isUsed(one))) {
      if (await this.#removeUnused(image)) log.info({ event: "image_removed", image: image.id }, "the default image of an earlier version was removed");
    }
  }

  async #useDefault<T>(task: (id: string) => Promise<T>): Promise<T> {
    const missing = (cause?: unknown) =>
      new SandgateError("unavailable", "the default image is not on this worker; the next start of Sandgate there makes it again", { cause });
    const id = this.#parts.config.defaultImageId;
    if (!id) throw missing();
    await this.#uses.note(id);
    return task(id).catch((error: unknown) => {
      throw error instanceof ImageGone ? missing(error) : error;
    });
  }

  async #usePulled<T>(wanted: ImageReference, task: (id: string) => Promise<T>): Promise<T> {
    const id = (await this.#find(wanted))?.id ?? (await this.#pulls.run(nameOf(wanted), () => this.#pull(wanted)));
    const unpin = this.#pins.add(id);
    try {
      refuseUnusable(wanted, await this.#parts.store.layers(id));
      await this.#uses.note(id);
      return await task(id);
    } finally {
      unpin();
    }
  }

  /** Finds an image by its exact full name; Podman itself would also complete partial names. */
  async #find(wanted: ImageReference): Promise<StoredImage | undefined> {
    const name = nameOf(wanted);
    return (await this.#stored()).find(({ names, digests }) => names.includes(name) || digests.includes(name));
  }

  async #pull(wanted: ImageReference): Promise<string> {
    const { config, puller, log } = this.#parts;
    const image = nameOf(wanted);
    if (wanted.registry === localRegistry) throw imageError("image_not_found", `image not found: ${image} is not on this worker`);
    if (!config.imagePull) throw imageError("image_not_found", `image not found: ${image} is not on this worker, and images are not pulled here`);
    log.info({ event: "image_pull", image }, "pulling an image");
    const before = new Set((await this.#stored()).map(({ id }) => id));
    try {
      const id = await step("image.pull", () => puller.pull(wanted));
      await this.#turns.run("remove", () => this.#makeRoom(id));
      log.info({ event: "image_pulled", image, id }, "an image was pulled");
      return id;
    } catch (err) {
      log.warn({ err, cause: err instanceof Error ? err.cause : undefined, event: "image_pull_failed", image }, "the image could not be pulled");
      await this.#turns
        .run("remove", () => this.#dropRefused(wanted, before))
        .catch((cause) => log.warn({ err: cause, image }, "a refused image could not be removed"));
      throw err;
    }
  }

  /** Removes an image that may have been stored just before its pull was aborted for its size. Podman names it only after that. */
  async #dropRefused(wanted: ImageReference, before: ReadonlySet<string>): Promise<void> {
    const named = await this.#find(wanted);
    // Whose an image without a name is, is certain only while nothing else is pulled.
    const nameless = this.#pulls.size > 1 ? [] : (await this.#stored()).filter(({ id, names }) => names.length === 0 && !before.has(id));
    for (const stored of named ? [named, ...nameless] : nameless) {
      // An image that also has another name was here before.
      if (stored.names.length <= 1 && !this.#parts.needed().has(stored.id) && !this.#pins.has(stored.id)) await this.#removeUnused(stored);
    }
  }

  /** Makes room for an image that was just pulled, or removes that image. @throws {SandgateError} `insufficient_storage` */
  async #makeRoom(newId: string): Promise<void> {
    const { config, log } = this.#parts;
    await this.#uses.note(newId);
    const isPulledHere = (image: StoredImage): boolean => isPulled(image) && image.id !== config.defaultImageId;
    await this.#release();
    if (bytesOf((await this.#stored()).filter(isPulledHere)) <= config.imagesBytesMax) return;
    await this.#letGo();
    await this.#release();
    const [images, uses] = await Promise.all([this.#stored(), this.#uses.all()]);
    const pulled = images.filter(isPulledHere);
    const latest = pulled.find(({ id }) => id === newId);
    const isHopeless = latest !== undefined && latest.sizeBytes > config.imagesBytesMax;
    const mayGo = (image: StoredImage): boolean => image !== latest && !this.#isUsed(image);
    const going = surplus(pulled, config.imagesBytesMax, { mayGo, usedAtMs: ({ id }) => uses.get(id) ?? 0 });
    let bytes = bytesOf(pulled);
    const fits = bytes - bytesOf(going) <= config.imagesBytesMax;
    for (const image of fits ? going : []) {
      if (this.#isUsed(image) || !(await this.#removeUnused(image))) continue;
      bytes -= image.sizeBytes;
      log.info({ event: "image_removed", image: image.id, names: image.names, bytes: image.sizeBytes }, "an image was removed to make room for another");
    }
    if (bytes <= config.imagesBytesMax || latest === undefined) return;
    await this.#removeUnused(latest);
    throw new SandgateError("insufficient_storage", isHopeless ? tooLarge(config) : "there is no room for another image: the present ones are in use");
  }

  /** @returns false when a container uses the image */
  async #removeUnused(image: StoredImage): Promise<boolean> {
    const isRemoved = await this.#parts.store.remove(image);
    if (isRemoved) {
      const gone = keysOf(image);
      this.#keys = this.#keys.filter((key) => !gone.includes(key));
      await this.#uses.forget(image.id);
    }
    return isRemoved;
  }

  #isUsed({ id, names, digests, containers }: StoredImage): boolean {
    const isPinned = [id, ...names, ...digests].some((key) => this.#pins.has(key));
    return isPinned || containers > 0 || id === this.#parts.config.defaultImageId || this.#parts.needed().has(id);
  }

  /** Releases images that nothing on this worker needs any more. */
  async #release(): Promise<void> {
    const { store, workerId, needed, config } = this.#parts;
    const isFree = (id: string): boolean => !needed().has(id) && !this.#pins.has(id) && id !== config.defaultImageId;
    for (const held of [...this.#held].filter(isFree)) {
      await this.#turns.run(held, async () => {
        if (!isFree(held) || !this.#held.delete(held)) return;
        await store.release(workerId, held);
      });
    }
  }
}

const keysOf = ({ names, digests }: StoredImage): string[] => [...new Set([...names, ...digests])].map(keyOfName);

const bytesOf = (images: readonly StoredImage[]): number => images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
