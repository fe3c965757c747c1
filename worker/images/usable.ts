/**
 * Whether the configuration of a stranger's image may be handed to Podman and the OCI runtime, which read more from it than
 * what a sandbox is to run.
 */
import { type ImageReference, imageError, nameOf } from "../../shared/util/image.ts";
import type { ImageLayers } from "../runtime/podman/images.ts";

/**
 * Annotations that say what an image is. Podman passes all of them on to the runtime, which takes others for orders, such as
 * where its filter of system calls is to come from.
 */
const harmless = ["org.opencontainers.image.", "org.label-schema.", "com.docker.official-images.", "io.buildah.", "dev.chainguard."];

/** Of what comes with every command, and with every snapshot into the directory, which each gateway has in memory. */
const baseCharsMax = 256 * 1024;

/** @throws {SandgateError} `unprocessable` with what is in the way */
export function refuseUnusable(wanted: ImageReference, { base, annotations }: Pick<ImageLayers, "base" | "annotations">): void {
  // Podman gives a variable without a value the one that it has itself.
  if (base.env.some((pair) => pair.indexOf("=") < 1)) throw unusable(wanted, "it has a variable without a value");
  if (JSON.stringify(base).length > baseCharsMax) throw unusable(wanted, "its variables, working directory and user are too long");
  const order = annotations.find((key) => !harmless.some((prefix) => key.startsWith(prefix)));
  if (order !== undefined) throw unusable(wanted, `it has the annotation ${JSON.stringify(order.slice(0, 100))}`);
}

const unusable = (wanted: ImageReference, why: string) =>
  imageError("image_not_allowed", `image not allowed: ${nameOf(wanted)} is not run here, because ${why}`);
