/**
 * Names of container images, by the grammar and the short names of Docker
 * (https://pkg.go.dev/github.com/distribution/reference). Nothing that is not such a name gets as far as Podman, which takes
 * paths of the host as images as well (`oci:/etc`).
 */
import { type ReasonOf, SandgateError } from "../errors.ts";

/** What is wrong with an image, so that callers can tell it apart. */
export type ImageFault = Extract<ReasonOf<"unprocessable">, "invalid_image" | `image_${string}` | `registry_${string}`>;

/** The one place where an image is refused: 422 for all of them, the message says which it is. */
export function imageError(reason: ImageFault, message: string, cause?: unknown): SandgateError {
  return new SandgateError("unprocessable", message, { reason, cause });
}

export interface ImageReference {
  /** `host` or `host:port`; `localhost` alone for images that no registry has. */
  readonly registry: string;
  readonly path: string;
  /** `:tag` or `@digest`. A digest says all, so a tag beside it is dropped. */
  readonly version: string;
}

/** The registry of short names, and its folder for names without any. */
const shortNames = { registry: "docker.io", alias: "index.docker.io", folder: "library/" } as const;
/** Images with this in place of a registry are on the machine itself. */
export const localRegistry = "localhost";
/** The word for the installation's own image. */
export const defaultImageWord = "default";

/** Longer than any reference can be. */
const textCharsMax = 1_024;
const pathCharsMax = 255;
const component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const pathPattern = new RegExp(`^${component}(?:/${component})*$`);
const label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const registryPattern = new RegExp(`^(?:${label}(?:\\.${label})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]{1,5})?$`);
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const digestPattern = /^sha256:[a-f0-9]{64}$/;
const idPattern = /^[a-f0-9]{64}$/;

/** Whether this is the id of an image, or of a container: nothing but that is ever handed to Podman in its place. */
export const isImageId = (text: string): boolean => idPattern.test(text);

/**
 * An image by its name, made whole: `alpine` is `docker.io/library/alpine:latest`.
 *
 * @throws {SandgateError} `unprocessable` with what is wrong
 */
export function parseImage(text: string): ImageReference {
  if (text === "") throw invalid(text, "it is empty");
  if (text.length > textCharsMax) throw invalid(text, `there are more than ${textCharsMax} characters`);
  const at = text.indexOf("@");
  const digest = at < 0 ? undefined : text.slice(at + 1);
  const named = at < 0 ? text : text.slice(0, at);
  const colon = named.indexOf(":", named.lastIndexOf("/") + 1);
  const tag = colon < 0 ? undefined : named.slice(colon + 1);
  const { registry, path } = whole(colon < 0 ? named : named.slice(0, colon));
  if (!registryPattern.test(registry))
    throw invalid(text, "before its first / stands neither a folder nor a registry such as registry.example or 192.0.2.1:5000");
  if (!pathPattern.test(path)) {
    throw invalid(text, "its path must be of lower-case letters and digits, single '.', '_', '-' between them, and single '/' between folders");
  }
  if (path.length > pathCharsMax) throw invalid(text, `its path has more than ${pathCharsMax} characters`);
  if (idPattern.test(named)) throw invalid(text, "it is an id; images are asked for by name");
  if (tag !== undefined && !tagPattern.test(tag)) throw invalid(text, "its tag must be 1 to 128 letters, digits, '_', '.', '-', the first none of '.' and '-'");
  if (digest !== undefined && !digestPattern.test(digest)) throw invalid(text, "its digest must be sha256: and 64 hexadecimal digits in lower case");
  return { registry, path, version: digest === undefined ? `:${tag ?? "latest"}` : `@${digest}` };
}

/** The rule of short names: what stands before the first slash is a registry when it has a dot or a colon, or is `localhost`. */
function whole(name: string): { registry: string; path: string } {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0)).toLowerCase();
  const hasRegistry = /[.:]/.test(first) || first === localRegistry;
  const path = hasRegistry ? name.slice(slash + 1) : name;
  const registry = !hasRegistry || first === shortNames.alias ? shortNames.registry : first;
  return { registry, path: registry === shortNames.registry && !path.includes("/") ? shortNames.folder + path : path };
}

/** A reference as the one text that all of its spellings have in common. */
export function nameOf({ registry, path, version }: ImageReference): string {
  return `${registry}/${path}${version}`;
}

/** `host` or `host:port` as references have it; undefined when it is none. */
export function parseRegistry(text: string): string | undefined {
  const registry = text.toLowerCase();
  return registryPattern.test(registry) ? registry : undefined;
}

/** The name or address of a registry, without its port, and without `[…]` around an address of IPv6. */
export function hostOf(registry: string): string {
  return registry.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** Which images an installation has beside those of registries. */
export interface LocalImages {
  readonly defaultImage: string;
  readonly localImages: readonly string[];
}

/**
 * The image that a caller asks for: `default` for the installation's own one, under whichever name.
 *
 * @throws {SandgateError} `unprocessable` for what is no name, and for images of this machine that the operator has not named
 */
export function wantedImage(text: string, { defaultImage, localImages }: LocalImages): typeof defaultImageWord | ImageReference {
  if (text === defaultImageWord) return defaultImageWord;
  const reference = parseImage(text);
  const name = nameOf(reference);
  if (name === defaultImage) return defaultImageWord;
  if (reference.registry === localRegistry && !localImages.includes(name)) {
    throw imageError("image_not_allowed", `image not allowed: ${name} is not one of the local images that the operator offers`);
  }
  return reference;
}

const shownCharsMax = 80;

function invalid(text: string, why: string): SandgateError {
  const shown = JSON.stringify(text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text);
  return imageError("invalid_image", `image must be the name of a container image, such as "default" or "docker.io/library/alpine:3"; in ${shown} ${why}`);
}
