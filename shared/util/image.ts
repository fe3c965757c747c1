/**
 * Names of container images, with the grammar and short names of Docker
 * (https://pkg.go.dev/github.com/distribution/reference). Only such names reach Podman, which would also accept paths of the
 * host as images (`oci:/etc`).
 */
import { createHash } from "node:crypto";
import { type ReasonOf, SandgateError } from "../errors.ts";

/** What is wrong with an image: the reason that callers get. */
type ImageFault = Extract<ReasonOf<"unprocessable">, "invalid_image" | `image_${string}` | `registry_${string}`>;

/** The one place where images are refused: always 422, with a message that says why. */
export function imageError(reason: ImageFault, message: string, cause?: unknown): SandgateError {
  return new SandgateError("unprocessable", message, { reason, cause });
}

export interface ImageReference {
  /** `host` or `host:port`; `localhost` alone for images that are in no registry. */
  readonly registry: string;
  readonly path: string;
  /** `:tag` or `@digest`. A digest identifies the image alone, so a tag beside it is dropped. */
  readonly version: string;
}

/** The registry of short names, and its folder for names without one. */
const shortNames = { registry: "docker.io", alias: "index.docker.io", folder: "library/" } as const;
/** The registry part of images that exist only on this machine. */
export const localRegistry = "localhost";
/** The name that stands for the installation's own image. */
export const defaultImageWord = "default";

/** The length of `keyOfName`. */
export const imageKeyCharacters = 8;

/** Longer than any valid reference. */
const textCharsMax = 1_024;
const pathCharsMax = 255;
const component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const pathPattern = new RegExp(`^${component}(?:/${component})*$`);
const label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const registryPattern = new RegExp(`^(?:${label}(?:\\.${label})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]{1,5})?$`);
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const digestPattern = /^sha256:[a-f0-9]{64}$/;
const idPattern = /^[a-f0-9]{64}$/;

/** Whether this is the id of an image or container. Only texts of this form are passed to Podman as ids. */
export const isImageId = (text: string): boolean => idPattern.test(text);

/**
 * Parses an image name and completes it: `alpine` becomes `docker.io/library/alpine:latest`.
 *
 * @throws {SandgateError} `unprocessable`, with a message that says what is wrong
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
    throw invalid(text, "the part before its first / is neither a folder nor a registry such as registry.example or 192.0.2.1:5000");
  if (!pathPattern.test(path)) {
    throw invalid(text, "its path must consist of lower-case letters and digits, single '.', '_', '-' between them, and single '/' between folders");
  }
  if (path.length > pathCharsMax) throw invalid(text, `its path has more than ${pathCharsMax} characters`);
  if (idPattern.test(named)) throw invalid(text, "it is an id; use the image's name");
  if (tag !== undefined && !tagPattern.test(tag))
    throw invalid(text, "its tag must be 1 to 128 letters, digits, '_', '.', '-', starting with neither '.' nor '-'");
  if (digest !== undefined && !digestPattern.test(digest)) throw invalid(text, "its digest must be sha256: and 64 hexadecimal digits in lower case");
  return { registry, path, version: digest === undefined ? `:${tag ?? "latest"}` : `@${digest}` };
}

/** The rule for short names: the part before the first slash is a registry if it has a dot or a colon, or is `localhost`. */
function whole(name: string): { registry: string; path: string } {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0)).toLowerCase();
  const hasRegistry = /[.:]/.test(first) || first === localRegistry;
  const path = hasRegistry ? name.slice(slash + 1) : name;
  const registry = !hasRegistry || first === shortNames.alias ? shortNames.registry : first;
  return { registry, path: registry === shortNames.registry && !path.includes("/") ? shortNames.folder + path : path };
}

/** A reference as text, in one form for all of its spellings. */
export function nameOf({ registry, path, version }: ImageReference): string {
  return `${registry}/${path}${version}`;
}

/** An image's name as workers tell it to gateways in every heartbeat: 48 bits of its hash. */
export const keyOfName = (name: string): string => createHash("sha256").update(name).digest("base64url").slice(0, imageKeyCharacters);

/** `host` or `host:port` as in references; undefined if the text is neither. */
export function parseRegistry(text: string): string | undefined {
  const registry = text.toLowerCase();
  return registryPattern.test(registry) ? registry : undefined;
}

/** The name or address of a registry without its port, and without the `[…]` of an IPv6 address. */
export function hostOf(registry: string): string {
  return registry.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** The images an installation has besides those of registries. */
export interface LocalImages {
  readonly defaultImage: string;
  readonly localImages: readonly string[];
}

/**
 * The image that a caller asks for; `default` if it is the installation's own one, whatever name was used.
 *
 * @throws {SandgateError} `unprocessable` for invalid names, and for local images that the operator does not offer
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
