/**
 * The files that a sandbox finds mounted in its container and may change: its names, and where it looks others up. Podman would write
 * them itself, among what it needs for all containers, where a sandbox could fill the memory that is there, and with the names of this
 * machine and worker. Here, each sandbox has a small file system for them.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { detachMount, mountInMemory } from "../filesystem/mounting.ts";
import { resolverText } from "../network/resolvers.ts";
import { MountedPath, makePassable, readable } from "./mounted-path.ts";

/** All of them together. */
const options = "mode=711,size=256k,nr_inodes=16";
const hostResolver = "/etc/resolv.conf";
const thisMachine = "127.0.0.1";

/** By their names in the folder of a sandbox, where they are in its container. */
export const ownFiles = {
  hosts: "/etc/hosts",
  hostname: "/etc/hostname",
  containerenv: "/run/.containerenv",
  resolver: "/etc/resolv.conf",
} as const;

/** What the files of a sandbox say of it. */
export interface Identity {
  /** The first is its hostname. */
  readonly names: readonly string[];
  /** The address by which others know it; undefined without a network, and then it has no resolver. */
  readonly address: string | undefined;
}

export class OwnFiles extends MountedPath<Identity> {
  override async make(sandboxId: string, { names, address }: Identity): Promise<void> {
    makePassable(this.dir);
    // Whoever had them before may have changed them in any way.
    if (existsSync(this.of(sandboxId))) await this.remove(sandboxId);
    const dir = this.of(sandboxId);
    mkdirSync(dir);
    mountInMemory(dir, options);
    const texts: Partial<Record<keyof typeof ownFiles, string>> = {
      hosts: `${thisMachine}\tlocalhost\n${names.map((name) => `${address ?? thisMachine}\t${name}\n`).join("")}`,
      hostname: `${names[0] ?? ""}\n`,
      containerenv: "",
      ...(address === undefined ? {} : { resolver: resolverText(attempt(() => readFileSync(hostResolver, "utf8")) ?? "") }),
    };
    for (const [name, text] of Object.entries(texts)) {
      writeFileSync(join(dir, name), text);
      chmodSync(join(dir, name), readable);
    }
  }

  override async remove(sandboxId: string): Promise<void> {
    const dir = this.of(sandboxId);
    while (await detachMount(dir));
    rmSync(dir, { recursive: true, force: true });
  }
}
