/** The image that `"default"` stands for: built from Debian packages, or pulled when the setting names a registry. */
import { createHash, randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { settings } from "../../shared/config.ts";
import { isImageId, localRegistry } from "../../shared/util/image.ts";
import { accountEnvironment, inPodmanNamespace } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { CommandError, run } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import type { Progress } from "../base/terminal.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import { type Builder, buildRootFilesystem, contentsOf, defaultRecipe } from "./root-filesystem.ts";
import type { Step } from "./step.ts";

const configuration = [`ENV PATH=${searchPath}`, "ENV LANG=C.UTF-8", "WORKDIR /root", "USER root", 'CMD ["/bin/bash"]'];
/** The label that says which version of the product built the image. */
const recipeLabel = "sandgate.recipe";
const recipe = createHash("sha256")
  .update(JSON.stringify([contentsOf(defaultRecipe), configuration]))
  .digest("hex")
  .slice(0, 16);

export interface ImageStep extends Step {
  /** Whether an image exists, possibly from an earlier version of the product. */
  isUsable(): Promise<boolean>;
  /** Whether the step will build it, rather than pull it or take the one that the operator has provided. */
  isToBeBuilt(): Promise<boolean>;
}

/**
 * The image in the account's Podman storage, recorded by id, because a name can be moved to another image. If the operator
 * has configured a name of their own, that image is never replaced: whichever image has the name at the start is used.
 */
export function defaultImage(instance: Instance, builder: Builder): ImageStep {
  const { defaultImage: image } = instance.config;
  const isBuilt = isBuiltHere(instance);
  const isOurs = image === settings.defaultImage.fallback;
  const isOperators = isBuilt && !isOurs;
  const lacks = async (): Promise<string | undefined> => {
    const id = await defaultImageId(instance);
    const made = id === undefined ? undefined : await recipeOf(instance, id);
    if (made === undefined) return image;
    if (isOperators && (await idOf(instance, image)) !== id) return `${image} as it is now`;
    return isOurs && made !== recipe ? `${image} of this version` : undefined;
  };
  return {
    title: isBuilt ? "Building the default image" : "Pulling the default image",
    lacks,
    isToBeBuilt: async () => isBuilt && (await lacks()) !== undefined && !(isOperators && (await exists(instance, image))),
    isUsable: async () => {
      const id = await defaultImageId(instance);
      return id !== undefined && exists(instance, id);
    },
    provide: async (progress) => {
      const own = isOperators ? await idOf(instance, image) : undefined;
      const id = own ?? (isBuilt ? await build(instance, builder, progress) : await pull(instance, builder));
      // The worker removes the former image once no sandbox or snapshot uses it.
      await record(instance, id);
    },
  };
}

/** Whether the default image is built on this machine rather than pulled from a registry. */
function isBuiltHere({ config }: Instance): boolean {
  return config.defaultImage.startsWith(`${localRegistry}/`);
}

/** The id of the default image that the last set-up found or built; undefined before the first, or if the setting names another image. */
export async function defaultImageId({ config, paths }: Instance): Promise<string | undefined> {
  const text = await readIfThere(paths.defaultImage);
  if (text === undefined) return undefined;
  const [id = "", name] = text.trim().split(" ");
  return name === config.defaultImage && isImageId(id) ? id : undefined;
}

/** The record is in a file that the account cannot write, so that no process of the account can substitute another image. */
async function record({ config, paths, account }: Instance, id: string): Promise<void> {
  const owner = { mode: 0o640, uid: process.getuid?.() ?? 0, gid: account.gid };
  await replaceFile(paths.defaultImage, `${id} ${config.defaultImage}\n`, owner);
}

async function pull(instance: Instance, { signal }: Builder): Promise<string> {
  const { defaultImage, imagePullTimeoutMs } = instance.config;
  return lastId(await podman(instance, ["pull", "--quiet", `docker://${defaultImage}`], { signal, timeoutMs: imagePullTimeoutMs }));
}

async function build(instance: Instance, builder: Builder, progress: Progress): Promise<string> {
  const archive = join(instance.paths.temporary, `image-${randomBytes(4).toString("hex")}.tar`);
  try {
    await removeAbandoned(instance);
    await buildRootFilesystem(instance, defaultRecipe, archive, builder, progress);
    progress.say("storing the image");
    const changes = [...configuration, `LABEL ${recipeLabel}=${recipe}`].flatMap((change) => ["--change", change]);
    return lastId(await podman(instance, ["import", "--quiet", ...changes, archive, instance.config.defaultImage], { signal: builder.signal }));
  } finally {
    await rm(archive, { force: true });
  }
}

/** Archives left by a build that was killed. */
async function removeAbandoned({ paths }: Instance): Promise<void> {
  for (const name of await readdir(paths.temporary)) await rm(join(paths.temporary, name), { recursive: true, force: true });
}

/** The id that Podman prints for an image it has built or pulled. */
function lastId(output: string): string {
  const id = (output.trim().split("\n").at(-1) ?? "").replace(/^sha256:/, "");
  if (!isImageId(id)) throw new StartFailure(`Podman did not tell the id of the default image: ${JSON.stringify(output.slice(0, 200))}`);
  return id;
}

async function exists(instance: Instance, image: string): Promise<boolean> {
  return (await ifThere(podman(instance, ["image", "exists", image]))) !== undefined;
}

async function ifThere(answer: Promise<string>): Promise<string | undefined> {
  try {
    return await answer;
  } catch (error) {
    // Podman exits with 1 for "no such image"; anything else is a defect of the storage, which a build would not repair.
    if (error instanceof CommandError && error.exitCode === 1) return undefined;
    throw error;
  }
}

/** The id of the image that currently has a name. */
async function idOf(instance: Instance, name: string): Promise<string | undefined> {
  return (await exists(instance, name)) ? lastId(await podman(instance, ["image", "inspect", "--format", "{{.Id}}", name])) : undefined;
}

/** The recipe in an image's label; undefined when there is no such image. One shell asks both, because entering the namespace takes as long as Podman itself. */
function recipeOf(instance: Instance, id: string): Promise<string | undefined> {
  const ask = 'podman image exists "$1" || exit; exec podman image inspect --format "$2" "$1"';
  return ifThere(inNamespace(instance, ["sh", "-c", ask, "sh", id, `{{index .Labels "${recipeLabel}"}}`]));
}

function podman(instance: Instance, args: readonly string[], options: Parameters<typeof run>[1] = {}): Promise<string> {
  return inNamespace(instance, ["podman", ...args], options);
}

function inNamespace(instance: Instance, argv: readonly string[], options: Parameters<typeof run>[1] = {}): Promise<string> {
  return run(inPodmanNamespace(instance, argv), { ...options, env: accountEnvironment(instance), cwd: "/" });
}
