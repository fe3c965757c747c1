/** The image that `"default"` stands for: built from Debian packages, or pulled when the setting names a registry. */
import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { accountEnvironment, inPodmanNamespace } from "../as-account.ts";
import type { Instance } from "../instance.ts";
import { CommandError, run } from "../run.ts";
import { searchPath } from "../search-path.ts";
import type { Progress } from "../terminal.ts";
import { type Builder, buildRootFilesystem } from "./root-filesystem.ts";
import type { Step } from "./step.ts";

const imageConfiguration = [`ENV PATH=${searchPath}`, "ENV LANG=C.UTF-8", "WORKDIR /root", "USER root", 'CMD ["/bin/bash"]'];

/** The image in the account's Podman storage. */
export function defaultImage(instance: Instance, builder: Builder): Step {
  const { defaultImage: image } = instance.config;
  const isBuilt = isBuiltHere(instance);
  return {
    title: isBuilt ? "Building the default image" : "Pulling the default image",
    lacks: async () => ((await hasImage(instance)) ? undefined : image),
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
    const changes = imageConfiguration.flatMap((change) => ["--change", change]);
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

function podman(instance: Instance, args: readonly string[], options: Parameters<typeof run>[1] = {}): Promise<string> {
  const argv = inPodmanNamespace(instance, ["podman", ...args]);
  return run(argv, { ...options, env: accountEnvironment(instance), cwd: "/" });
}
