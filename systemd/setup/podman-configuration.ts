/** storage.conf and containers.conf of this installation; Podman reads them instead of the account's own. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Account, type Instance, sessionBusOf } from "../base/instance.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import type { Step } from "./step.ts";

/** Writes both files with the settings that fit this machine. */
export function podmanConfiguration(instance: Instance): Step {
  const files = () => [
    { path: instance.paths.storageConf, text: storageConf(instance) },
    { path: instance.paths.containersConf, text: containersConf(instance) },
  ];
  return {
    title: "Configuring Podman",
    lacks: async () => {
      for (const { path, text } of files()) if ((await readIfThere(path)) !== text) return path;
      return undefined;
    },
    provide: async () => {
      for (const { path, text } of files()) {
        await replaceFile(path, text, { mode: 0o640, uid: process.getuid?.() ?? 0, gid: instance.account.gid });
      }
    },
  };
}

/** Podman 4.3 takes a rootless graph root from rootless_storage_path only, and the run root from XDG_RUNTIME_DIR. */
function storageConf({ paths, runtimeDir }: Instance): string {
  const graphRoot = JSON.stringify(join(paths.storage, "storage"));
  return `[storage]
driver = "overlay"
graphroot = ${graphRoot}
rootless_storage_path = ${graphRoot}
runroot = ${JSON.stringify(join(runtimeDir, "containers"))}
`;
}

/**
 * File locks are in XDG_RUNTIME_DIR; the default locks are limited in number and shared by everything that an account does
 * with Podman. Events would be written for every container, and nobody reads them. A keyring for each container would count
 * against the account's limit of 200 keys; sandboxes have no system calls to use one. The worker limits processes where the kernel
 * can; Podman's own limit would keep every container from starting where it cannot.
 * Where Sandgate's own groups of cgroup v2 hold the sandboxes, Podman makes none, which it must know gVisor's runtime to support.
 */
function containersConf({ account, paths }: Instance): string {
  return `[containers]
keyring = false
pids_limit = 0

[engine]
runtime = "crun"
cgroup_manager = "${hasDelegatedCgroups(account) ? "systemd" : "cgroupfs"}"
events_logger = "none"
lock_type = "file"
image_copy_tmp_dir = ${JSON.stringify(paths.imageTemporary)}
runtime_supports_nocgroup = ["crun", "runsc"]

[engine.runtimes]
runsc = [${JSON.stringify(join(paths.app, "systemd/base/strong-runtime"))}]
`;
}

/** systemd delegates part of the cgroup v2 tree to accounts that have a session bus. */
function hasDelegatedCgroups(account: Account): boolean {
  return existsSync("/sys/fs/cgroup/cgroup.controllers") && existsSync(sessionBusOf(account));
}
