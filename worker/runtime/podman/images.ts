/** The images in Podman's storage, which several workers of a machine may share. Images are addressed by id; names are only read. */
import { existsSync } from "node:fs";
import type { BaseImage } from "../../../shared/bus/entries.ts";
import { checkedId, failure, ImageGone, isImageMissing, lastLine, podman, podmanOutput } from "./podman.ts";

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
  /** By id. */
  readonly #known = new Map<string, ImageLayers>();

  /** All images in the storage. */
  async list(): Promise<StoredImage[]> {
    const text = await podmanOutput("list the images", ["images", "--no-trunc", "--format", "json"]);
    // Podman lists an image that has several names once for each of them.
    const listed = JSON.parse(text || "[]") as ListedImage[];
    return [...new Map(listed.map((image) => [image.Id, image])).values()].map(({ Id, Names, RepoDigests, History, Size, Containers }) => ({
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
    const result = await podman(["image", "inspect", "--format", "json", checkedPrefix(id)]);
    if (isImageMissing(result)) throw new ImageGone(id);
    if (result.exitCode !== 0) throw failure("look the image up", result);
    const [{ Id, Config, GraphDriver, Annotations }] = JSON.parse(result.stdout) as [InspectedImage];
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
    return lastLine(await podmanOutput("look into the image", ["image", "mount", checkedId(base.id)]));
  }

  /** The image that a container was created from. */
  async ofContainer(containerId: string): Promise<ImageLayers> {
    const id = await podmanOutput("look the container up", ["container", "inspect", "--format", "{{.Image}}", containerId]);
    return this.layers(id.trim());
  }

  /** Removes an image with all its names. Returns false when a container uses it, in which case Podman always keeps it. */
  async remove({ id, names }: Pick<StoredImage, "id" | "names">): Promise<boolean> {
    // Podman does not remove an image with several names by id.
    if (names.length > 1) await podman(["untag", checkedId(id)]);
    const result = await podman(["rmi", checkedId(id)]);
    this.#known.delete(id);
    if (result.exitCode === 0 || isImageMissing(result) || /image not known/i.test(result.stderr)) return true;
    if (/in use|being used/i.test(result.stderr)) return false;
    throw failure("remove the image", result);
  }

  /** Keeps an image until this worker releases it, even from other workers with the same storage. @throws {ImageGone} */
  async hold(workerId: string, id: string): Promise<void> {
    const labels = [`${holderLabel}=${workerId}`, "sandgate.worker=", "sandgate.sandbox="].flatMap((label) => ["--label", label]);
    const quiet = ["--network", "none", "--log-driver", "none", "--image-volume", "ignore", "--no-healthcheck", "--entrypoint", JSON.stringify(["/none"])];
    const result = await podman(["create", "--pull", "never", "--name", holderName(workerId, id), ...labels, ...quiet, checkedId(id)]);
    if (result.exitCode === 0 || /already in use/i.test(result.stderr)) return;
    throw isImageMissing(result) ? new ImageGone(id) : failure("keep the image", result);
  }

  /** The images that a worker keeps. */
  async held(workerId: string): Promise<string[]> {
    const filters = ["--filter", `label=${holderLabel}=${workerId}`, "--filter", "name=^sandgate-image-"];
    const ids = await podmanOutput("list the images that are kept", ["ps", "--all", "--no-trunc", ...filters, "--format", "{{.ImageID}}"]);
    return ids.split("\n").filter(Boolean);
  }

  async release(workerId: string, id: string): Promise<void> {
    await podmanOutput("let the image go", ["rm", "--force", "--ignore", holderName(workerId, checkedId(id))]);
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
