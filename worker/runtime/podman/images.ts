/** The images in Podman's storage, which several workers of a machine may share. Images are addressed by id; names are only read. */
import { existsSync } from "node:fs";
import type { BaseImage } from "../../../shared/bus/entries.ts";
import { type Answer, checkedId, failure, ImageGone, isDone, isImageMissing, lastLine, podman, reasonOf } from "./podman.ts";
import type { PodmanService } from "./service.ts";
import type { Call } from "./service-process.ts";
import { byName, type SpecGenerator } from "./spec-generator.ts";

/** An image, and the folders of its layers, topmost first. */
export interface ImageLayers {
  readonly base: BaseImage;
  readonly lowers: readonly string[];
  /** The names of the image's annotations. */
  readonly annotations: readonly string[];
}

/** An image as Podman lists it. */
export interface StoredImage {
  readonly id: string;
  readonly names: readonly string[];
  /** `registry/path@digest`. */
  readonly digests: readonly string[];
  /** All names that it has ever had here. */
  readonly formerNames: readonly string[];
  /** Includes layers shared with other images. */
  readonly sizeBytes: number;
  /** How many containers use it. */
  readonly containers: number;
}

/** The label of containers that never run, but keep their image from being removed by Podman. */
const holderLabel = "sandgate.holder";
const holderName = (workerId: string, imageId: string): string => `sandgate-image-${imageId}-${workerId}`;

export class PodmanImages {
  readonly #service: PodmanService;
  /** By id. */
  readonly #known = new Map<string, ImageLayers>();

  constructor(service: PodmanService) {
    this.#service = service;
  }

  /** All images in the storage. */
  async list(): Promise<StoredImage[]> {
    const { text } = await this.#done("list the images", { method: "GET", path: "/images/json" });
    return (JSON.parse(text) as ListedImage[]).map(({ Id, Names, RepoDigests, History, Size, Containers }) => ({
      id: Id,
      names: Names ?? [],
      digests: RepoDigests ?? [],
      formerNames: History ?? [],
      sizeBytes: Size,
      containers: Containers ?? 0,
    }));
  }

  /**
   * The layers of a present image.
   *
   * @param id the id, or its prefix as used in layer names
   * @throws {ImageGone}
   */
  async layers(id: string): Promise<ImageLayers> {
    const known = this.#known.get(id);
    if (known && isThere(known)) return known;
    const answer = await this.#service.repeat({ method: "GET", path: `/images/${checkedPrefix(id)}/json` });
    if (isImageMissing(answer)) throw new ImageGone(id);
    if (!isDone(answer)) throw failure("look the image up", answer);
    const { Id, Config, GraphDriver, Annotations } = JSON.parse(answer.text) as InspectedImage;
    const { UpperDir, LowerDir } = GraphDriver.Data;
    const base = { id: Id, env: Config.Env ?? [], working_dir: Config.WorkingDir || "/", user: Config.User ?? "" };
    const image = { base, lowers: [UpperDir, ...(LowerDir ? LowerDir.split(":") : [])], annotations: Object.keys(Annotations ?? {}) };
    this.#known.set(Id, image);
    return image;
  }

  /** A folder with the whole content of a present image. */
  async folder(id: string): Promise<string> {
    const { base, lowers } = await this.layers(id);
    if (lowers.length === 1) return lowers[0] as string;
    // The API does not offer this.
    const result = await podman(["image", "mount", checkedId(base.id)]);
    if (result.exitCode !== 0) throw failure("look into the image", result);
    return lastLine(result.stdout);
  }

  /** The image that a container was created from. */
  async ofContainer(containerId: string): Promise<ImageLayers> {
    const { text } = await this.#done("look the container up", { method: "GET", path: `/containers/${containerId}/json` });
    return this.layers((JSON.parse(text) as { Image: string }).Image);
  }

  /** Removes an image with all its names. Returns false when a container uses it, in which case Podman always keeps it. */
  async remove({ id, names }: Pick<StoredImage, "id" | "names">): Promise<boolean> {
    // Podman does not remove an image with several names by id.
    if (names.length > 1) await this.#service.repeat({ method: "POST", path: `/images/${checkedId(id)}/untag` });
    const answer = await this.#service.repeat({ method: "DELETE", path: `/images/${checkedId(id)}` });
    this.#known.delete(id);
    if (isDone(answer) || isImageMissing(answer)) return true;
    if (/in use|being used/i.test(reasonOf(answer))) return false;
    throw failure("remove the image", answer);
  }

  /** Keeps an image until this worker releases it, even from other workers with the same storage. @throws {ImageGone} */
  async hold(workerId: string, id: string): Promise<void> {
    const holder: SpecGenerator = {
      name: holderName(workerId, id),
      image: checkedId(id),
      labels: byName([`${holderLabel}=${workerId}`, "sandgate.worker=", "sandgate.sandbox="]),
      entrypoint: ["/none"],
      netns: { nsmode: "none" },
      log_configuration: { driver: "none" },
      image_volume_mode: "ignore",
      healthconfig: { Test: ["NONE"] },
    };
    const answer = await this.#service.repeat({ method: "POST", path: "/containers/create", body: holder });
    if (isDone(answer) || /already in use/i.test(reasonOf(answer))) return;
    throw isImageMissing(answer) ? new ImageGone(id) : failure("keep the image", answer);
  }

  /** The images that a worker keeps. */
  async held(workerId: string): Promise<string[]> {
    const filters = JSON.stringify({ label: [`${holderLabel}=${workerId}`], name: ["^sandgate-image-"] });
    const { text } = await this.#done("list the images that are kept", { method: "GET", path: "/containers/json", query: { all: "true", filters } });
    return (JSON.parse(text) as { ImageID: string }[]).map(({ ImageID }) => ImageID);
  }

  async release(workerId: string, id: string): Promise<void> {
    const path = `/containers/${holderName(workerId, checkedId(id))}`;
    const answer = await this.#service.repeat({ method: "DELETE", path, query: { force: "true", v: "true" } });
    if (!isDone(answer) && answer.status !== 404) throw failure("let the image go", answer);
  }

  async #done(action: string, call: Call): Promise<Answer> {
    const answer = await this.#service.repeat(call);
    if (!isDone(answer)) throw failure(action, answer);
    return answer;
  }
}

interface ListedImage {
  readonly Id: string;
  readonly Names?: string[] | null;
  readonly RepoDigests?: string[] | null;
  readonly History?: string[] | null;
  readonly Size: number;
  readonly Containers?: number;
}

interface InspectedImage {
  readonly Id: string;
  readonly Config: { readonly Env?: string[]; readonly WorkingDir?: string; readonly User?: string };
  readonly Annotations?: Readonly<Record<string, string>> | null;
  readonly GraphDriver: { readonly Data: { readonly UpperDir: string; readonly LowerDir?: string } };
}

/** Another worker may have removed an image that this one remembers. */
const isThere = ({ lowers: [top = ""] }: ImageLayers): boolean => existsSync(top);

/** Layer names contain half of an image id, which is enough to find the image. */
function checkedPrefix(id: string): string {
  return /^[a-f0-9]{32}$/.test(id) ? id : checkedId(id);
}
