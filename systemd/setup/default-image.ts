/** The image that `"default"` stands for: built from Debian packages, or pulled when the setting names a registry. */
import { createHash, randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { settings } from "../../shared/config.ts";
import { accountEnvironment, inPodmanNamespace } from "../as-account.ts";
import type { Instance } from "../instance.ts";
import { CommandError, run } from "../run.ts";
import { searchPath } from "../search-path.ts";
import type { Progress } from "../terminal.ts";
import { type Builder, buildRootFilesystem, contents } from "./root-filesystem.ts";
import type { Step } from "./step.ts";

const configuration = [`ENV PATH=${searchPath}`, "ENV LANG=C.UTF-8", "WORKDIR /root", "USER root", 'CMD ["/bin/bash"]'];
/** Tells an image of this version of the product from those of others. */
const recipeLabel = "sandgate.recipe";
const recipe = createHash("sha256")
  .update(JSON.stringify([contents, configuration]))
  .digest("hex")
  .slice(0, 16);

export interface ImageStep extends Step {
  /** Whether there is an image, be it of an earlier version of the product. */
  isUsable(): Promise<boolean>;
}

/** The image in the account's Podman storage. One under a name of the operator's own is never replaced. */
export function defaultImage(instance: Instance, builder: Builder): ImageStep {
  const { defaultImage: image } = instance.config;
  const isBuilt = isBuiltHere(instance);
  const isOurs = image === settings.defaultImage.fallback;
  return {
    title: isBuilt ? "Building the default image" : "Pulling the default image",
    lacks: async () => {
      if (!(await hasImage(instance))) return image;
      return isOurs && (await recipeOf(instance)) !== recipe ? `${image} of this version` : undefined;
    },
    isUsable: () => hasImage(instance),
    provide: async (progress) => {
      if (isBuilt) return build(instance, builder, progress);
      await podman(instance, ["pull", "--quiet", image], { signal: builder.signal, timeoutMs: instance.config.imagePullTimeoutMs });
    },
  };
}

/** Whether the default image is made on this machine, as opposed to pulled from a registry. */
export function isBuiltHere({ config }: Instance): boolean {
  return config.defaultImage.startsWith("localhost/");
}

async function build(instance: Instance, builder: Builder, progress: Progress): Promise<void> {
  const archive = join(instance.paths.temporary, `image-${randomBytes(4).toString("hex")}.tar`);
  try {
    await removeAbandoned(instance);
    await buildRootFilesystem(instance, archive, builder, progress);
    progress.say("storing the image");
    const changes = [...configuration, `LABEL ${recipeLabel}=${recipe}`].flatMap((change) => ["--change", change]);
    await podman(instance, ["import", "--quiet", ...changes, archive, instance.config.defaultImage], { signal: builder.signal });
  } finally {
    await rm(archive, { force: true });
  }
}

/** Archives of a build that was killed. */
async function removeAbandoned({ paths }: Instance): Promise<void> {
  for (const name of await readdir(paths.temporary)) await rm(join(paths.temporary, name), { recursive: true, force: true });
}

async function hasImage(instance: Instance): Promise<boolean> {
  try {
    await podman(instance, ["image", "exists", instance.config.defaultImage]);
    return true;
  } catch (error) {
    // Podman keeps 1 for "no such image"; everything else is a defect of the storage that a build would not mend.
    if (error instanceof CommandError && error.exitCode === 1) return false;
    throw error;
  }
}

async function recipeOf(instance: Instance): Promise<string> {
  return (await podman(instance, ["image", "inspect", "--format", `{{index .Labels "${recipeLabel}"}}`, instance.config.defaultImage])).trim();
}

function podman(instance: Instance, args: readonly string[], options: Parameters<typeof run>[1] = {}): Promise<string> {
  const argv = inPodmanNamespace(instance, ["podman", ...args]);
  return run(argv, { ...options, env: accountEnvironment(instance), cwd: "/" });
}
