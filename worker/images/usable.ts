/**
 * Checks whether the configuration of an untrusted image may be passed to Podman and the OCI runtime, which read more from it
 * than the command to run.
 */
import { type ImageReference, imageError, nameOf } from "../../shared/util/image.ts";
import type { ImageLayers } from "../runtime/podman/images.ts";

/**
 * Prefixes of annotations that only describe an image. Podman passes all annotations to the runtime, which takes others as
 * instructions, such as where to load its system call filter from.
 */
const harmless = ["org.opencontainers.image.", "org.label-schema.", "com.docker.official-images.", "io.buildah.", "dev.chainguard."];

/** The most characters of configuration, which comes with every command and, in directory entries, lies in each gateway's memory. */
const baseCharsMax = 256 * 1024;

/** @throws {SandgateError} `unprocessable`, with what is wrong */
export function refuseUnusable(wanted: ImageReference, { base, annotations }: Pick<ImageLayers, "base" | "annotations">): void {
  // For a variable without a value, Podman would use that of its own environment.
  if (base.env.some((pair) => pair.indexOf("=") < 1)) throw unusable(wanted, "it has a variable without a value");
  if (JSON.stringify(base).length > baseCharsMax) throw unusable(wanted, "its variables, working directory and user are too long");
  const order = annotations.find((key) => !harmless.some((prefix) => key.startsWith(prefix)));
  if (order !== undefined) throw unusable(wanted, `it has the annotation ${JSON.stringify(order.slice(0, 100))}`);
}

const unusable = (wanted: ImageReference, why: string) =>
  imageError("image_not_allowed", `image not allowed: ${nameOf(wanted)} is not run here, because ${why}`);
